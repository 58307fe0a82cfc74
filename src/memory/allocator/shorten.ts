import type { Condenser, Stretch } from './condense.ts';
import type { AllocationLog, ScriptEntry } from './script.ts';

/** Layers of a kind that are played one by one: the first or the first two, and the last; the others are played at once. */
const FIRST = 0;
const LAST = 2;
export const OTHERS = 3;
export const COPIES = 4;
/** A stretch as it is played: of one layer, or of `count` at once. */
export interface Item {
  readonly stretch: Stretch;
  readonly kind: ScriptEntry['kind'];
  readonly copy: number;
  /** Event by event; else only what it keeps and frees of what others have made. */
  readonly whole: boolean;
  readonly count: number;
  /** Number of its kind of layer, 0: no layer. */
  readonly layer: number;
  readonly resultSlot: number;
}

/** Layers that are alike have the recordings of the same one. */
interface Alike {
  readonly number: number;
  count: number;
}

/** A log of the script, and how many of its layers have come so far. */
interface Part {
  readonly stretch: Stretch;
  seen: number;
}

/** The script with equal layers drawn together but the first `lead` (1 or 2) and the last. */
export function shorten(
  script: readonly ScriptEntry[],
  condenser: Condenser,
  lead: number,
): {
  readonly items: readonly Item[];
  /** Kinds of layers, and what is none. */
  readonly layers: number;
} {
  const kinds = countAlike(script);
  const parts = new Map<AllocationLog, Part>();
  const items: Item[] = [];
  for (const { instance, log, resultId, kind, times } of script) {
    let part = parts.get(log);
    if (!part) {
      part = { stretch: condenser.condense(log), seen: 0 };
      parts.set(log, part);
    }
    const { stretch } = part;
    const resultSlot = resultId === 0 ? 0 : condenser.slotOf(resultId);
    const alike = kinds.byInstance.get(instance);
    if (!alike) {
      items.push({ stretch, kind, layer: 0, resultSlot, copy: FIRST, count: 1, whole: true });
      continue;
    }
    const { count, number: layer } = alike;
    const empty = stretch.from === stretch.to && stretch.smallPeak === 0 && stretch.smallEnd === 0;
    if (empty && resultId === 0) continue;
    for (let i = 0; i < times; i += 1) {
      const index = kind === 'forward' ? part.seen : count - 1 - part.seen;
      part.seen += 1;
      const copy = index < lead ? index : index === count - 1 ? LAST : OTHERS;
      if (copy !== OTHERS) {
        // Where nothing of a backward pass stays, the first layer only sees more free memory than the last.
        const whole = kind === 'forward' || index === count - 1 || leaves(stretch, resultSlot);
        items.push({ stretch, kind, layer, resultSlot, copy, count: 1, whole });
      } else if (index === (kind === 'forward' ? lead : count - 2)) {
        items.push({ stretch, kind, layer, resultSlot, copy, count: count - lead - 1, whole: false });
      }
    }
  }
  return { items, layers: kinds.kinds + 1 };
}

/** Whether anything but the result stays of what a stretch makes. */
const leaves = ({ kept, renewed }: Stretch, resultSlot: number): boolean =>
  kept.some((slot) => slot !== resultSlot) || renewed.some((slot) => slot !== resultSlot);

function countAlike(script: readonly ScriptEntry[]) {
  const byLog = new Map<AllocationLog, Alike>();
  const byInstance = new Map<number, Alike>();
  for (const { instance, log, times } of script) {
    if (instance === 0 || byInstance.has(instance)) continue;
    let alike = byLog.get(log);
    if (!alike) {
      alike = { number: byLog.size + 1, count: 0 };
      byLog.set(log, alike);
    }
    alike.count += times;
    byInstance.set(instance, alike);
  }
  return { byInstance, kinds: byLog.size };
}
