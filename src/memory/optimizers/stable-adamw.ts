import { F32 } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { scalarPerTensor, tensorsLike } from './shared.ts';

/** optimi's StableAdamW as it runs on CUDA (Triton, in place): two moments, and Kahan's compensation for 16-bit weights. */
export const stableAdamw: OptimizerFamily = {
  names: ['stable_adamw'],
  source: 'torch-optimi 0.3.3 optimi/stableadamw.py _init_state',
  formula: 'two moments in the weight’s dtype, a third tensor for 16-bit weights (kahan_sum), three numbers a tensor',
  cost: (groups, { args }) => {
    const compensated = args.has('kahan_sum') ? groups : groups.filter(({ parameter }) => parameter.dtype !== F32);
    const narrow = compensated.filter(({ parameter }) => parameter.dtype !== F32);
    return {
      statesBytes: tensorsLike(groups, 2) + tensorsLike(narrow, 1) + 2 * scalarPerTensor(groups),
      temporaryBytes: 0,
      hostBytes: 0,
    };
  },
};
