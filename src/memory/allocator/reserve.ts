import { BlockPool, MOST_UNITS, SMALL_UNITS } from './block-pool.ts';
import { longer, NONE } from './free-ring.ts';
import { type LayerGroup, Layers } from './layers.ts';
import { Pools } from './pools.ts';
import { type ScriptEntry, UNIT } from './script.ts';
import {
  ALLOCATE,
  ENSURE,
  OPERATION,
  PRODUCT,
  RELEASE,
  RELEASE_GRADIENT,
  RELEASE_INPUT,
  REUSE,
  SLOT_SHIFT,
  type Stretch,
  Stretches,
} from './stretches.ts';

/** Equal tensors. */
export interface TensorList {
  readonly bytes: number;
  readonly count: number;
}

export interface ReserveInput {
  /** Puts there what is made before the first step. */
  readonly load: (pools: Pools) => void;
  /** What else is there throughout, bytes. */
  readonly otherBytes: number;
  readonly script: readonly ScriptEntry[];
  /** Made by the first optimizer step. */
  readonly states: readonly TensorList[];
  /** Made and freed by every optimizer step. */
  readonly temporaries: readonly TensorList[];
  readonly steps: number;
  /** First layers of a kind that are played one by one. */
  readonly lead: number;
  /**
   * FSDP: what one device keeps of a layer's gradients. 0: they go at once into buffers that are there throughout, as DeepSpeed's.
   * undefined: gradients stay as they are.
   */
  readonly gradientShare: number | undefined;
  /** One cuBLAS workspace, bytes: made by each thread's first product, and kept. */
  readonly workspaceBytes: number;
  /** A segment that the first loss leaves behind, bytes; 0: none. */
  readonly lossSegmentBytes: number;
}

/** One estimate follows the other: they share the room. */
const stretches = new Stretches();
const layers = new Layers();
const pools = new Pools();
/** Pool of FSDP's reduce-scatter stream. */
const reduced = new BlockPool();
let live = new Int32Array(2048);
let inputs = new Int32Array(64);

/** A stretch as it is played: of one layer, or of several at once. */
interface Item {
  readonly stretch: Stretch;
  readonly kind: ScriptEntry['kind'];
  /** Undefined: no layer. */
  readonly group: LayerGroup | undefined;
  readonly resultSlot: number;
}

/** Bytes reserved after `steps` steps. */
export function reservedBytes(input: ReserveInput): number {
  stretches.clear();
  layers.read(input.script, input.lead);
  const items = itemsOf(input.script);
  pools.clear(stretches.rank());
  reduced.clear();
  input.load(pools);
  pools.large.settle();
  const player = new Player(input);
  for (let step = 0; step < input.steps; step += 1) {
    // zero_grad: what the backward pass has left are gradients.
    player.clear();
    const start = pools.small;
    player.play(step === 0 ? items : othersTogether(items), step === 0);
    pools.small = start;
    if (step === 0) for (const { bytes, count } of input.states) pools.hold(bytes, count);
    const after = pools.small;
    for (const { bytes, count } of input.temporaries) pools.lend(bytes, count);
    pools.small = after;
  }
  return input.otherBytes + pools.reserved + reduced.reserved;
}

function itemsOf(script: readonly ScriptEntry[]): Item[] {
  const known = new Map<ScriptEntry['log'], Stretch>();
  const items: Item[] = [];
  for (const { instance, log, resultId, kind, times } of script) {
    let stretch = known.get(log);
    if (!stretch) {
      stretch = stretches.add(log);
      known.set(log, stretch);
    }
    const resultSlot = resultId === 0 ? 0 : stretches.lastingSlotOf(resultId);
    if (instance === 0) {
      items.push({ stretch, kind, group: undefined, resultSlot });
      continue;
    }
    const empty = stretch.from === stretch.to && stretch.smallPeak === 0 && stretch.smallEnd === 0;
    if (empty && resultId === 0) continue;
    for (let i = 0; i < times; i += 1) {
      const group = layers.groupAt(instance + (kind === 'forward' ? i : times - 1 - i), kind);
      if (group) items.push({ stretch, kind, group, resultSlot });
    }
  }
  return items;
}

/** For a step that plays the first and the last layers alone: the others of a kind as one group. */
function othersTogether(items: readonly Item[]): Item[] {
  const fewer: Item[] = [];
  for (const item of items) {
    const { group, kind, stretch, resultSlot } = item;
    if (!group || group.to === group.of || group.from < group.lead) fewer.push(item);
    else if (kind === 'forward' ? group.from === group.lead : group.to === group.of - 1) {
      const together = { ...group, row: group.others, from: group.lead, to: group.of - 1 };
      fewer.push({ stretch, kind, group: together, resultSlot });
    }
  }
  return fewer;
}

/** Layers that the host is ahead of the device: FSDP waits for the second last gathering before it starts another. */
const LAYERS_AHEAD = 2;

/** Plays steps on one pool. */
class Player {
  private lastOutput = NONE;
  private lastGradient = NONE;
  private readonly multiplied = new Set<ScriptEntry['kind']>();
  private readonly joined: number[] = [];

  constructor(private readonly input: ReserveInput) {
    while (this.room > live.length) live = longer(live);
    while (layers.rows > inputs.length) inputs = longer(inputs);
  }

  /** One row for what passes, and one a group for what lasts. */
  private get room(): number {
    return stretches.passing + layers.rows * stretches.lasting;
  }

  clear(): void {
    live.fill(NONE, 0, this.room);
    inputs.fill(NONE, 0, layers.rows);
    this.lastOutput = NONE;
    this.lastGradient = NONE;
    pools.large.sweep();
  }

  play(items: readonly Item[], isFirst: boolean): void {
    const { large } = pools;
    const { lossSegmentBytes, gradientShare } = this.input;
    let turned = false;
    for (const { stretch, kind, group, resultSlot } of items) {
      if (kind === 'backward' && !turned) {
        turned = true;
        if (isFirst && lossSegmentBytes > 0)
          large.leaveSegment(Math.min(Math.ceil(lossSegmentBytes / UNIT), MOST_UNITS));
      }
      const count = group ? group.to - group.from : 1;
      pools.addSmall(stretch.smallPeak + (count - 1) * stretch.smallEnd, count * stretch.smallEnd);
      if (playsWhole(stretch, kind, group, resultSlot, isFirst)) {
        large.freeForgotten();
        this.playOne(stretch, kind, group?.row ?? 0, resultSlot);
        // FSDP reduces the gradients of head and embedding together, at the end.
        if (kind === 'backward' && gradientShare !== undefined && (group || gradientShare === 0)) {
          this.reduce(stretch, group?.row ?? 0, isFirst);
        }
      } else this.playMany(stretch, kind, group!, resultSlot, isFirst);
    }
    large.freeForgotten();
    for (const allocation of this.joined) pools.release(allocation);
    this.joined.length = 0;
  }

  private playOne(stretch: Stretch, kind: ScriptEntry['kind'], own: number, resultSlot: number): void {
    const { large } = pools;
    const { codes, units, rungs } = stretches;
    const row = stretches.passing + own * stretches.lasting;
    const column = live;
    if (kind === 'forward' && this.lastOutput !== NONE) inputs[own] = this.lastOutput;
    for (let at = stretch.from; at < stretch.to; at += 1) {
      const code = codes[at]!;
      const slot = code >> SLOT_SHIFT;
      const place = slot >= 0 ? slot : row - slot;
      switch (code & OPERATION) {
        case ALLOCATE:
          column[place] = large.allocate(units[at]!, rungs[at]!);
          break;
        case RELEASE:
          large.release(column[place]!);
          column[place] = NONE;
          break;
        case REUSE:
          column[place] =
            column[place] === NONE
              ? large.allocate(units[at]!, rungs[at]!)
              : large.reuse(column[place]!, units[at]!, rungs[at]!);
          break;
        case ENSURE:
          large.ensure(units[at]!, rungs[at]!);
          break;
        case RELEASE_INPUT:
          large.release(inputs[own]!);
          inputs[own] = NONE;
          break;
        case RELEASE_GRADIENT:
          large.release(this.lastGradient);
          this.lastGradient = NONE;
          break;
        case PRODUCT:
          this.multiply(kind);
      }
    }
    let result = NONE;
    if (resultSlot !== 0) {
      result = column[row + resultSlot]!;
      column[row + resultSlot] = NONE;
    }
    if (kind === 'forward') this.lastOutput = result;
    else if (result !== NONE) this.lastGradient = result;
  }

  /** What is kept of equal layers, and at the way back first what they free. */
  private playMany(
    stretch: Stretch,
    kind: ScriptEntry['kind'],
    { row: own, from, to }: LayerGroup,
    resultSlot: number,
    isFirst: boolean,
  ): void {
    const row = stretches.passing + own * stretches.lasting;
    const count = to - from;
    for (const slot of stretch.freed) this.forget(live, row + slot);
    if (kind === 'backward' && stretch.freesInput) this.forget(inputs, own);
    if (kind === 'backward' && this.input.gradientShare !== undefined) {
      const units = this.leftUnits(stretch, (slot) => slot !== resultSlot);
      for (const slot of stretch.renewed) this.forget(live, row + slot);
      if (units > 0 && isFirst) this.shard(units, count);
      return;
    }
    for (const slot of stretch.kept) {
      const units = stretches.lastingUnits[slot]!;
      if (slot !== resultSlot) live[row + slot] = this.many(units, count);
      else if (kind === 'forward' && !stretch.freesInput) inputs[own] = this.many(units, count);
    }
  }

  private many(units: number, count: number): number {
    pools.large.freeForgotten();
    return pools.large.allocateMany(units, count);
  }

  /** Gradients of one layer become one tensor, and that a shard on a stream of its own. */
  private reduce(stretch: Stretch, own: number, isFirst: boolean): void {
    const row = stretches.passing + own * stretches.lasting;
    const units = this.leftUnits(stretch, (slot) => live[row + slot] !== NONE);
    if (units === 0) return;
    if (this.input.gradientShare! > 0) this.joined.push(pools.allocate(units * UNIT));
    for (const slots of [stretch.kept, stretch.renewed]) {
      for (const slot of slots) {
        pools.large.release(live[row + slot]!);
        live[row + slot] = NONE;
      }
    }
    if (isFirst) this.shard(units, 1);
    if (this.joined.length > LAYERS_AHEAD) pools.release(this.joined.shift()!);
  }

  /** What a stretch leaves in slots for which `counts` holds, units. */
  private leftUnits({ kept, renewed }: Stretch, counts: (slot: number) => boolean): number {
    let units = 0;
    for (const slots of [kept, renewed]) {
      for (const slot of slots) if (counts(slot)) units += stretches.lastingUnits[slot]!;
    }
    return units;
  }

  /** Shards of gradients last until the step ends, and those of the next step find their room. */
  private shard(units: number, count: number): void {
    const own = Math.min(Math.ceil(units * this.input.gradientShare!), MOST_UNITS);
    if (own > SMALL_UNITS) reduced.hold(own, count);
  }

  private multiply(thread: ScriptEntry['kind']): void {
    // The autograd engine runs in a thread with a handle of its own.
    if (this.multiplied.has(thread)) return;
    this.multiplied.add(thread);
    const workspace = pools.allocate(this.input.workspaceBytes);
    if (workspace > 0) pools.large.keep(workspace);
  }

  private forget(column: Int32Array, at: number): void {
    if (column[at] === NONE) return;
    pools.large.forget(column[at]!);
    column[at] = NONE;
  }
}

/**
 * Whether a stretch is played event by event, or only what it keeps and frees of what others have made. The last layer of a kind has
 * most beside it. The second step finds nearly all the room it needs: only its gradients want new room, and what the last layer has
 * on the way back.
 */
function playsWhole(
  stretch: Stretch,
  kind: ScriptEntry['kind'],
  group: LayerGroup | undefined,
  resultSlot: number,
  isFirst: boolean,
): boolean {
  if (!group) return true;
  if (group.to - group.from > 1) return false;
  if (group.to === group.of) return isFirst || kind === 'backward';
  // Where nothing of a backward pass stays, an earlier layer only sees more free memory than the last.
  if (kind === 'backward') return (isFirst || group.from < group.lead) && leaves(stretch, resultSlot);
  return isFirst;
}

/** Whether anything but the result stays of what a stretch makes. */
const leaves = ({ kept, renewed }: Stretch, resultSlot: number): boolean =>
  kept.some((slot) => slot !== resultSlot) || renewed.some((slot) => slot !== resultSlot);
