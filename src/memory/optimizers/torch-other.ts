import type { OptimizerFamily } from './optimizer.ts';
import { foreachTemporary, largest, scalarPerTensor, tensorsLike } from './shared.ts';

/** torch Adagrad, foreach: one sum; its roots and the scaled gradients are there at once. */
const adagrad: OptimizerFamily = {
  names: ['adagrad'],
  source: 'torch 2.13 optim/adagrad.py _multi_tensor_adagrad',
  formula: 'one sum of squares in the weight’s dtype; two more lists of it in the step',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 1) + scalarPerTensor(groups),
    temporaryBytes: foreachTemporary(groups, 2),
    hostBytes: 0,
  }),
};

const isTrue = (text: string | undefined): boolean => /^(true|1|yes)$/i.test(text ?? '');

/** torch RMSprop, foreach: one average (more when centred or with momentum), and the list of its roots during the step. */
const rmsprop: OptimizerFamily = {
  names: ['rmsprop'],
  source: 'torch 2.13 optim/rmsprop.py _multi_tensor_rmsprop',
  formula:
    'one average in the weight’s dtype (one more with momentum, one more when centred); a list of its roots in the step',
  cost: (groups, { args }) => {
    const states = 1 + (Number(args.get('momentum') ?? 0) > 0 ? 1 : 0) + (isTrue(args.get('centered')) ? 1 : 0);
    return {
      statesBytes: tensorsLike(groups, states) + scalarPerTensor(groups),
      temporaryBytes: foreachTemporary(groups),
      hostBytes: 0,
    };
  },
};

/** AnyPrecision AdamW: moments in the dtypes of `optim_args` (fp32), tensor by tensor; Kahan's compensation on request. */
const anyPrecision: OptimizerFamily = {
  names: ['adamw_anyprecision'],
  source: 'torchdistx optimizers/anyprecision_optimizer.py; transformers 5.17 trainer_optimizer.py (dtypes)',
  formula:
    'two moments in fp32 (optim_args), a bf16 compensation with use_kahan_summation; one fp32 tensor in the step',
  cost: (groups, { args }) => {
    const width = (name: string, otherwise: number): number => {
      const said = args.get(name);
      return said === undefined ? otherwise : /16$/.test(said) ? 2 : 4;
    };
    const elements = groups.reduce((total, { parameter, count }) => total + parameter.elements * count, 0);
    const kahan = isTrue(args.get('use_kahan_summation')) ? width('compensation_buffer_dtype', 2) : 0;
    return {
      statesBytes: elements * (width('momentum_dtype', 4) + width('variance_dtype', 4) + kahan),
      temporaryBytes: largest(groups, ({ parameter }) => parameter.elements * 4),
      hostBytes: 0,
    };
  },
};

/** transformers' own AdamW of before version 5: torch's states, one denominator a tensor. */
const formerAdamw: OptimizerFamily = {
  names: ['adamw_hf'],
  source: 'transformers 4.45 optimization.py AdamW.step',
  formula: 'two moments in the weight’s dtype; two tensors of one weight’s size in the step',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 2),
    temporaryBytes: largest(groups, ({ parameter, count }) => (count > 1 ? 2 : 1) * parameter.bytes),
    hostBytes: 0,
  }),
};

/** NVIDIA apex FusedAdam: the states of fused AdamW. */
const apex: OptimizerFamily = {
  names: ['adamw_apex_fused'],
  source: 'apex optimizers/fused_adam.py FusedAdam.step',
  formula: 'two moments in the weight’s dtype',
  cost: (groups) => ({ statesBytes: tensorsLike(groups, 2, undefined), temporaryBytes: 0, hostBytes: 0 }),
};

export const torchOther: readonly OptimizerFamily[] = [adagrad, rmsprop, anyPrecision, formerAdamw, apex];
