import type { Failure } from '../diagnosis/index.ts';
import type { MemoryBudget, MemoryEstimate } from '../memory/index.ts';

/**
 * How far a prediction fell short of what the run really needed, at least 1. Two lower bounds of the real need, by the failure's
 * own numbers: what torch had allocated plus what it asked for (against the predicted allocated peak), and all that the card had
 * left (against the predicted device peak), because it was not enough.
 */
export function shortfallFactor(predicted: MemoryEstimate, failure: Failure, budget: MemoryBudget | undefined): number {
  const { triedBytes, allocatedBytes, totalBytes, othersBytes } = failure.numbers;
  const wanted = triedBytes !== undefined && allocatedBytes !== undefined ? allocatedBytes + triedBytes : 0;
  const capacity = totalBytes ?? budget?.capacityBytes ?? 0;
  // Fragmentation and a card held by others fail with room to spare: there the card's size says nothing of the need.
  const left =
    failure.kind === 'vram_fragmentation' || failure.kind === 'vram_other_process'
      ? 0
      : capacity - Math.max(othersBytes ?? 0, budget?.usedByOthersBytes ?? 0);
  return Math.max(1, wanted / predicted.vram.allocatedPeakBytes, left / predicted.vram.devicePeakBytes);
}

/** What the next attempt may use, bytes: the budget, less what others were seen to hold; undefined: nothing is known of the card. */
export function usableAfter(failure: Failure, budget: MemoryBudget | undefined, headroom: number): number | undefined {
  const capacity = budget?.capacityBytes ?? failure.numbers.totalBytes;
  if (capacity === undefined) return undefined;
  const others = Math.max(failure.numbers.othersBytes ?? 0, budget?.usedByOthersBytes ?? 0);
  return Math.max(0, capacity - others - (budget?.headroomBytes ?? Math.ceil(capacity * headroom)));
}
