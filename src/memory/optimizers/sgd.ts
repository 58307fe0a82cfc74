import type { OptimizerFamily } from './optimizer.ts';
import { tensorsLike } from './shared.ts';

/** torch SGD, foreach: updates in place; no states but the momentum asked for in `optim_args`. */
export const sgd: OptimizerFamily = {
  names: ['sgd'],
  source: 'torch 2.13 optim/sgd.py _multi_tensor_sgd',
  formula: 'no states; one buffer in the weight’s dtype with momentum',
  cost: (groups, { args }) => ({
    statesBytes: Number(args.get('momentum') ?? 0) > 0 ? tensorsLike(groups, 1) : 0,
    temporaryBytes: 0,
    hostBytes: 0,
  }),
};
