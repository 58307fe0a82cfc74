import { adafactor } from './adafactor.ts';
import { adamwForeach, adamwFused } from './adamw.ts';
import { bitsandbytes } from './bitsandbytes.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { sgd } from './sgd.ts';
import { torchOther } from './torch-other.ts';
import { torchao } from './torchao.ts';

/** Every optimizer family; a new one is a file and a line here. */
export const OPTIMIZERS: readonly OptimizerFamily[] = [
  adamwForeach,
  adamwFused,
  adafactor,
  sgd,
  ...bitsandbytes,
  ...torchao,
  ...torchOther,
];

/** transformers' OptimizerNames without a rule, and why. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/^galore_|^apollo_/, 'its low-rank projections depend on optim_target_modules and optim_args'],
  [/^lomo$|^adalomo$/, 'it updates inside the backward pass'],
  [/_xla$|npu/, 'it is not for CUDA'],
  [/^grokadamw$|^stable_adamw$/, 'its states are not described'],
];

export const findOptimizer = (name: string): OptimizerFamily | undefined =>
  OPTIMIZERS.find((family) => family.names.includes(name));

export const refusalOf = (name: string): string =>
  REFUSED.find(([pattern]) => pattern.test(name))?.[1] ?? 'transformers has no optimizer of that name';
