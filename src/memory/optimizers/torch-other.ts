import { F32 } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { foreachTemporary, largest, scalarPerTensor, tensorsLike } from './shared.ts';

/** torch Adagrad and RMSprop, foreach: one state, and the list of its square roots during the step. */
const oneState: OptimizerFamily = {
  names: ['adagrad', 'rmsprop'],
  source: 'torch 2.13 optim/adagrad.py, optim/rmsprop.py',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 1) + scalarPerTensor(groups),
    temporaryBytes: foreachTemporary(groups),
    hostBytes: 0,
  }),
};

/** AnyPrecision AdamW with transformers' defaults: both moments fp32, tensor by tensor. */
const anyPrecision: OptimizerFamily = {
  names: ['adamw_anyprecision'],
  source: 'torchdistx optimizers/anyprecision_optimizer.py; transformers trainer_optimizer.py (dtypes)',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 2, F32),
    temporaryBytes: largest(groups, ({ parameter }) => parameter.elements * 4),
    hostBytes: 0,
  }),
};

/** schedule-free AdamW and RAdam hold a second copy of the weights and the second moment; SGD the copy alone. */
const scheduleFree = (names: readonly string[], states: number): OptimizerFamily => ({
  names,
  source: 'schedulefree adamw_schedulefree.py, radam_schedulefree.py, sgd_schedulefree.py',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, states),
    temporaryBytes: states > 1 ? foreachTemporary(groups) : 0,
    hostBytes: 0,
  }),
});

export const torchOther: readonly OptimizerFamily[] = [
  oneState,
  anyPrecision,
  scheduleFree(['schedule_free_adamw', 'schedule_free_radam'], 2),
  scheduleFree(['schedule_free_sgd'], 1),
];
