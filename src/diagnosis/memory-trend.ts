import { MiB } from '../core/index.ts';

/** One look at a run: how far it was, and what it held. */
export interface RunSample {
  readonly atMs: number;
  /** Steps of training so far, as its output tells. */
  readonly step: number;
  /** Device memory in use on the fullest card, bytes; undefined: no driver. */
  readonly vramBytes: number | undefined;
  /** Of the whole tree, bytes; undefined: not sized at this look. */
  readonly ramBytes: number | undefined;
  /** Of the whole tree, bytes. */
  readonly swapBytes: number;
}

/** Memory that grew with the steps, about as much at the end as at the beginning. */
export interface MemoryGrowth {
  readonly bytesPerStep: number;
  readonly fromStep: number;
  readonly toStep: number;
  readonly firstBytes: number;
  readonly lastBytes: number;
  /** Step at which the memory is used up at this pace; undefined: its size is not known. */
  readonly fullAtStep: number | undefined;
}

const FEWEST_SAMPLES = 16;
const FEWEST_STEPS = 20;
/** Loading, the first optimizer step, the first checkpoint: memory rises there in every run. */
const WARM_UP = 0.1;
const PARTS = 8;
/** Of what is held: less is a cache that fills, or a counter. */
const LEAST_SHARE = 0.05;
const LEAST_BYTES = 256 * MiB;
/** A peak of rows that happen to be longer grows ever more slowly; one that does not stop grows as it began. */
const STILL_GROWING = 0.75;
/** A single jump (an evaluation, a checkpoint) is no growth over steps. */
const LARGEST_JUMP = 0.5;
const RISING_PARTS = 5;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/**
 * Growth over steps in one of the sampled memories: the least that was held in each eighth of the steps rises, in most of them, and at
 * the end not much slower than on average. Undefined: it does not, or there is too little to tell by.
 */
export function growthOf(
  samples: readonly RunSample[],
  memory: 'vramBytes' | 'ramBytes',
  capacityBytes: number | undefined,
): MemoryGrowth | undefined {
  const known = samples.filter((sample) => sample[memory] !== undefined && sample.step > 0);
  const [first] = known;
  const last = known.at(-1);
  if (!first || !last || known.length < FEWEST_SAMPLES || last.step - first.step < FEWEST_STEPS) return undefined;
  const from = first.step + Math.ceil((last.step - first.step) * WARM_UP);
  const width = (last.step - from + 1) / PARTS;
  const levels: number[] = Array.from({ length: PARTS }, () => Number.POSITIVE_INFINITY);
  for (const sample of known) {
    if (sample.step < from) continue;
    const part = Math.min(PARTS - 1, Math.floor((sample.step - from) / width));
    levels[part] = Math.min(levels[part]!, sample[memory]!);
  }
  if (levels.some((level) => !Number.isFinite(level))) return undefined;
  const rises = levels.slice(1).map((level, at) => level - levels[at]!);
  const total = sum(rises);
  const end = levels.at(-1)!;
  const late = sum(rises.slice(-3)) / 3;
  const steady =
    total >= Math.max(LEAST_BYTES, LEAST_SHARE * end) &&
    late >= STILL_GROWING * (total / rises.length) &&
    Math.max(...rises) <= LARGEST_JUMP * total &&
    rises.filter((rise) => rise > 0).length >= RISING_PARTS;
  if (!steady) return undefined;
  const bytesPerStep = total / (width * rises.length);
  const lastBytes = last[memory]!;
  return {
    bytesPerStep: Math.round(bytesPerStep),
    fromStep: from,
    toStep: last.step,
    firstBytes: levels[0]!,
    lastBytes,
    fullAtStep:
      capacityBytes === undefined
        ? undefined
        : last.step + Math.max(0, Math.floor((capacityBytes - lastBytes) / bytesPerStep)),
  };
}
