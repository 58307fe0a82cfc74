import { F32, roundUp } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';

/** LOMO: the update happens in a hook of the backward pass, in fp32 copies of one gradient and its weight; no states. */
const lomoSgd: OptimizerFamily = {
  names: ['lomo'],
  source: 'lomo_optim 0.1.1 lomo.py fuse_update',
  formula: 'no states, no gradients after a tensor; fp32 copies of one gradient and its weight in the backward pass',
  cost: () => ({ statesBytes: 0, temporaryBytes: 0, hostBytes: 0 }),
  // The 16-bit gradient ends when its fp32 copy is there.
  updateBytes: ({ elements, dtype, bytes }) => (dtype === F32 ? 0 : 2 * roundUp(elements * 4) - bytes),
};

/** AdaLomo: row and column statistics in fp32 beside it, and three fp32 tensors of the weight's size for an update. */
const adaLomo: OptimizerFamily = {
  names: ['adalomo'],
  source: 'lomo_optim 0.1.1 adalomo.py fuse_update',
  formula:
    'rows + columns in fp32 a matrix, no gradients after a tensor; three fp32 tensors of one weight in the backward pass',
  cost: (groups) => {
    let statesBytes = 0;
    for (const { parameter, count } of groups) {
      const { rows, columns, elements, dimensions } = parameter;
      statesBytes += count * (dimensions < 2 ? roundUp(elements * 4) : roundUp(rows * 4) + roundUp(columns * 4));
    }
    return { statesBytes, temporaryBytes: 0, hostBytes: 0 };
  },
  updateBytes: ({ elements, dtype, bytes }) =>
    dtype === F32 ? 2 * roundUp(elements * 4) : 3 * roundUp(elements * 4) - bytes,
};

export const lomo: readonly OptimizerFamily[] = [lomoSgd, adaLomo];
