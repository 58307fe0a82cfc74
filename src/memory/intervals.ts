import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { ContextBytes } from './device.ts';
import type { Interval, VramEstimate } from './estimate.ts';
import type { Sharding } from './sharding.ts';

export interface Uncertain {
  readonly values: PlanValues;
  readonly facts: ModelFacts;
  readonly sharding: Sharding;
  readonly rowsPerRow: number;
  readonly allocatedBytes: number;
  readonly fragmentationBytes: number;
  /** Reserved memory comes from allocations that were played. */
  readonly playsAllocator: boolean;
  /** A segment that the loss may leave behind, bytes. */
  readonly lossSegmentBytes: number;
  readonly context: ContextBytes;
  /** All of the card's memory, bytes; undefined: not known. */
  readonly capacityBytes: number | undefined;
}

/** How far below and above what is estimated the truth may lie, bytes. */
interface Spread {
  readonly below: number;
  readonly above: number;
}

/** No interval of a described architecture is wider than this share of its middle. */
const WIDEST = 0.25;

/**
 * Drawing equal layers together in the allocator: reserved memory of 95 of 100 plans lies within this share of what playing every
 * allocation of every layer gives, and more often under it (npm run bench:allocator).
 */
const DRAWN_TOGETHER = { below: 0.01, above: 0.04 };

/** Intervals of the three counters. Every assumption adds its own width; shares are of what is allocated. */
export function intervalsOf(
  uncertain: Uncertain,
): Pick<VramEstimate, 'lowBytes' | 'highBytes'> & Required<Pick<VramEstimate, 'intervals'>> {
  const { allocatedBytes, fragmentationBytes, lossSegmentBytes, context } = uncertain;
  const tensors = spreadOfTensors(uncertain);
  // Holes depend on the order of every allocation: a third of them more or less.
  const holes = fragmentationBytes / 3;
  const reservedBytes = allocatedBytes + fragmentationBytes;
  const drawn = uncertain.playsAllocator ? reservedBytes : 0;
  const pool = {
    below: tensors.below + holes + lossSegmentBytes / 2 + DRAWN_TOGETHER.below * drawn,
    above: tensors.above + holes + lossSegmentBytes / 2 + DRAWN_TOGETHER.above * drawn,
  };
  const process = {
    below: pool.below + context.bytes - context.lowBytes,
    above: pool.above + context.highBytes - context.bytes,
  };
  const deviceBytes = reservedBytes + context.bytes;
  const widest = uncertain.facts.uncertainty === undefined ? WIDEST : 1;
  const least = allocatedBytes - tensors.below;
  const full = uncertain.capacityBytes ?? Number.POSITIVE_INFINITY;
  return {
    ...onCard(deviceBytes, around(deviceBytes, process, least, widest), least + context.lowBytes, full),
    intervals: {
      allocated: around(allocatedBytes, tensors, 0, widest),
      reserved: onCard(reservedBytes, around(reservedBytes, pool, least, widest), least, full - context.lowBytes),
    },
  };
}

/** What is allocated. */
function spreadOfTensors({ values, facts, sharding, rowsPerRow, allocatedBytes }: Uncertain): Spread {
  const own = values.lossImpl === 'chunked_logits' && values.ownModules === undefined;
  const sharded = sharding.engine === 'fsdp' || sharding.engine === 'deepspeed';
  // Published counters of single devices lie within this.
  let [below, above] = [0.03, 0.04];
  const widen = (unsure: boolean, downwards: number, upwards: number): void => {
    if (!unsure) return;
    below += downwards;
    above += upwards;
  };
  // What the description of the model itself may be off by.
  widen(facts.uncertainty !== undefined, facts.uncertainty ?? 0, facts.uncertainty ?? 0);
  // torchtune's modules are taken for those of transformers.
  widen(own, 0.06, 0.13);
  // LitGPT's are described, shapes and versions of its own are not all known.
  widen(values.ownModules !== undefined, 0.02, 0.02);
  // Packed formats differ by their padding, and what stays in 16 bits.
  widen(values.quantization !== null, 0.03, 0.01);
  // When units are gathered, reduced and let go is the engine's affair.
  widen(sharded, 0.03, 0.05);
  widen(sharded && values.method === 'full', 0.02, 0.04);
  return { below: below * allocatedBytes + lean(values, facts, rowsPerRow), above: above * allocatedBytes };
}

/** Ends in whole bytes, the lower one not below `least`; both come nearer where the width is too large. */
function around(bytes: number, { below, above }: Spread, least: number, widest: number): Interval {
  // k (below + above) = widest × (bytes + k (above − below) / 2)
  const share = Math.min(1, (widest * bytes) / (below + above - (widest * (above - below)) / 2));
  return {
    lowBytes: Math.min(bytes, Math.ceil(Math.max(bytes - share * below, least))),
    highBytes: Math.floor(bytes + share * above),
  };
}

/** A full card gets back what is only cached: the process then ends up anywhere between what is allocated and the card. */
function onCard(bytes: number, interval: Interval, least: number, capacityBytes: number): Interval {
  if (interval.highBytes <= capacityBytes || least >= capacityBytes) return interval;
  const { lowBytes } = interval;
  return { lowBytes: Math.round(Math.min(lowBytes, least)), highBytes: Math.max(Math.floor(capacityBytes), bytes) };
}

/** What rows without padding save: fused kernels then take no mask and grouped heads as they are. */
function lean(values: PlanValues, facts: ModelFacts, rowsPerRow: number): number {
  if (values.attnImplementation !== 'sdpa' || values.attentionMask) return 0;
  const rows = values.perDeviceTrainBatchSize * rowsPerRow;
  const mask = rows * values.maxLength ** 2 * 2;
  return values.gradientCheckpointing.enabled ? mask : mask * facts.numHiddenLayers;
}
