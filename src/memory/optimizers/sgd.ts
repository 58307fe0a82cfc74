import type { OptimizerFamily } from './optimizer.ts';

/** torch SGD without momentum, foreach: no states, updates in place. */
export const sgd: OptimizerFamily = {
  names: ['sgd'],
  source: 'torch 2.13 optim/sgd.py _multi_tensor_sgd',
  cost: () => ({ statesBytes: 0, temporaryBytes: 0, hostBytes: 0 }),
};
