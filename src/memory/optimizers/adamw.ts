import type { OptimizerFamily } from './optimizer.ts';
import { foreachTemporary, scalarPerTensor, tensorsLike } from './shared.ts';

/** torch AdamW, foreach: two moments in the parameter's dtype; the step holds the square roots of all second moments at once. */
export const adamwForeach: OptimizerFamily = {
  names: ['adamw_torch'],
  source: 'torch 2.13 optim/adam.py _multi_tensor_adam',
  formula: 'two moments in the weight’s dtype; the roots of all second moments at once in the step',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 2) + scalarPerTensor(groups),
    temporaryBytes: foreachTemporary(groups),
    hostBytes: 0,
  }),
};

/** torch AdamW, fused: the same moments, no temporaries. */
export const adamwFused: OptimizerFamily = {
  names: ['adamw_torch_fused'],
  source: 'torch 2.13 optim/adam.py _fused_adam',
  formula: 'two moments in the weight’s dtype, updated in place',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 2) + scalarPerTensor(groups),
    temporaryBytes: 0,
    hostBytes: 0,
  }),
};
