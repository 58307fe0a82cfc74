import type { RunSample } from './memory-trend.ts';

/** Steps that take far longer than they did, while memory is used up. */
export interface Slowdown {
  readonly usualStepMs: number;
  readonly stepMs: number;
  /**
   * `vram`: the card is full (a driver that moves memory to the host, an allocator that frees and asks again at every step); `swap`: the
   * machine fetches the run's pages from its disk.
   */
  readonly because: 'vram' | 'swap';
}

/** How many times as long; an evaluation or a checkpoint now and then does not come near. */
const FAR_LONGER = 4;
/** The latest part of a run that is looked at. */
const LATEST_SHARE = 1 / 8;
const LATEST_MOST_MS = 10 * 60_000;
const FEWEST_SAMPLES = 24;
const FEWEST_LATEST = 3;
const FULL = 0.97;
/** Pages that lie in swap because they are not used are few. */
const MUCH_SWAP = 0.25;

interface Stretch {
  readonly ms: number;
  readonly steps: number;
}

const stretch = (from: RunSample, to: RunSample): Stretch => ({
  ms: to.atMs - from.atMs,
  steps: to.step - from.step,
});

/** Whether a run has become slow for want of memory. Undefined: it has not, it stands still, or memory does not explain it. */
export function slowdownOf(samples: readonly RunSample[], vramCapacityBytes: number | undefined): Slowdown | undefined {
  const training = samples.filter(({ step }) => step > 0);
  const last = training.at(-1);
  const [first] = training;
  if (!first || !last || training.length < FEWEST_SAMPLES) return undefined;
  const latestMs = Math.min(LATEST_MOST_MS, (last.atMs - first.atMs) * LATEST_SHARE);
  const begins = training.findIndex(({ atMs }) => atMs >= last.atMs - latestMs);
  const latest = training.slice(begins);
  if (latest.length < FEWEST_LATEST) return undefined;
  const now = stretch(latest[0]!, last);
  const before = stretch(first, latest[0]!);
  if (now.steps < 2 || before.steps < 2) return undefined;
  const stepMs = now.ms / now.steps;
  const usualStepMs = before.ms / before.steps;
  if (stepMs < FAR_LONGER * usualStepMs) return undefined;
  const swapped = latest.every(({ swapBytes, ramBytes }) => {
    const inRam = ramBytes ?? Number.POSITIVE_INFINITY;
    return swapBytes > 0 && swapBytes >= MUCH_SWAP * (swapBytes + inRam);
  });
  const full =
    vramCapacityBytes !== undefined &&
    latest.every(({ vramBytes }) => vramBytes !== undefined && vramBytes >= FULL * vramCapacityBytes);
  if (!full && !swapped) return undefined;
  return { usualStepMs: Math.round(usualStepMs), stepMs: Math.round(stepMs), because: swapped ? 'swap' : 'vram' };
}
