import type { Failure } from '../diagnosis/index.ts';
import type { MemoryBudget, MemoryEstimate } from '../memory/index.ts';

/** What the process holds beside torch's tensors: context, libraries, cached blocks. It does not grow with the batch. */
const besideTensors = ({ vram }: MemoryEstimate): number => vram.devicePeakBytes - vram.allocatedPeakBytes;

/**
 * How far the predicted tensors fell short of what the run really needed, at least 1. Two lower bounds of the real need, by the
 * failure's own numbers: what torch had allocated plus what it asked for, and all that the card had left beside context and
 * cache, because it was not enough.
 */
export function shortfallFactor(predicted: MemoryEstimate, failure: Failure, budget: MemoryBudget | undefined): number {
  const { triedBytes, allocatedBytes, totalBytes, othersBytes } = failure.numbers;
  const wanted = triedBytes !== undefined && allocatedBytes !== undefined ? allocatedBytes + triedBytes : 0;
  const capacity = totalBytes ?? budget?.capacityBytes ?? 0;
  // Fragmentation and a card held by others fail with room to spare: there the card's size says nothing of the need.
  const left =
    failure.kind === 'vram_fragmentation' || failure.kind === 'vram_other_process'
      ? 0
      : capacity - Math.max(othersBytes ?? 0, budget?.usedByOthersBytes ?? 0) - besideTensors(predicted);
  return Math.max(1, Math.max(wanted, left) / predicted.vram.allocatedPeakBytes);
}

/** A prediction with its tensors scaled by what a failure showed, bytes on the device. */
export const calibratedNeed = (estimate: MemoryEstimate, factor: number): number =>
  Math.ceil(estimate.vram.allocatedPeakBytes * factor) + besideTensors(estimate);

/** What the next attempt may use, bytes: the budget, less what others were seen to hold; undefined: nothing is known of the card. */
export function usableAfter(failure: Failure, budget: MemoryBudget | undefined, headroom: number): number | undefined {
  const capacity = budget?.capacityBytes ?? failure.numbers.totalBytes;
  if (capacity === undefined) return undefined;
  const others = Math.max(failure.numbers.othersBytes ?? 0, budget?.usedByOthersBytes ?? 0);
  return Math.max(0, capacity - others - (budget?.headroomBytes ?? Math.ceil(capacity * headroom)));
}
