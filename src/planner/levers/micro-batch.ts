import type { PlanValues } from '../../spec/index.ts';
import type { Lever } from './lever.ts';

/**
 * A micro step takes as long as its tokens plus a part that does not shrink: kernels are launched and weights are read once
 * whatever the batch. Below a few hundred tokens a data-centre card waits for memory, not for arithmetic
 * (peak FLOP/s ÷ bytes/s, 150 to 300 for A100 to H100).
 */
const FIXED_TOKENS = 384;
const timePerToken = ({ perDeviceTrainBatchSize, maxLength }: PlanValues): number =>
  1 + FIXED_TOKENS / (perDeviceTrainBatchSize * maxLength);

/** At most about eight sizes: where a batch has many divisors, a step of less than three tenths is not worth a plan of its own. */
function coarse(sizes: readonly number[]): readonly number[] {
  if (sizes.length <= 8) return sizes;
  let last = Number.POSITIVE_INFINITY;
  return sizes.filter((size) => {
    const kept = size <= last * 0.7;
    if (kept) last = size;
    return kept;
  });
}

/** All divisors in rising order, by pairs: a batch may be absurdly large. */
function divisorsOf(rows: number): number[] {
  const low: number[] = [];
  for (let one = 1; one * one <= rows; one += 1) if (rows % one === 0) low.push(one);
  const high = low.map((one) => rows / one).reverse();
  return high[0] === low.at(-1) ? [...low, ...high.slice(1)] : [...low, ...high];
}

/** Smaller micro batches with as many more accumulation steps, through the divisors of what one rank does per step. */
export const microBatch: Lever = {
  id: 'micro-batch',
  class: 'exact',
  title: 'smaller micro batch, more accumulation steps',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward'],
  options: ({ perDeviceTrainBatchSize, gradientAccumulationSteps }) => {
    const rows = perDeviceTrainBatchSize * gradientAccumulationSteps;
    const smaller = divisorsOf(rows).filter((micro) => micro < perDeviceTrainBatchSize);
    return coarse(smaller.reverse()).map((micro) => ({
      perDeviceTrainBatchSize: micro,
      gradientAccumulationSteps: rows / micro,
    }));
  },
  roughFactor: (from, to) => timePerToken(to) / timePerToken({ ...from, maxLength: to.maxLength }),
};
