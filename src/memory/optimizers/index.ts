import { adafactor } from './adafactor.ts';
import { adamwForeach, adamwFused } from './adamw.ts';
import { apollo } from './apollo.ts';
import { bitsandbytes } from './bitsandbytes.ts';
import { galore } from './galore.ts';
import { grokAdamw } from './grokadamw.ts';
import { lomo } from './lomo.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { scheduleFree } from './schedule-free.ts';
import { sgd } from './sgd.ts';
import { stableAdamw } from './stable-adamw.ts';
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
  ...scheduleFree,
  ...galore,
  ...apollo,
  ...lomo,
  grokAdamw,
  stableAdamw,
];

/** transformers' OptimizerNames without a rule, and why. */
const REFUSED: readonly (readonly [RegExp, string])[] = [[/_xla$|npu/, 'it is not for CUDA']];

let byName: ReadonlyMap<string, OptimizerFamily> | undefined;

/** Of several families that answer to a name the first. */
export function findOptimizer(name: string): OptimizerFamily | undefined {
  byName ??= new Map(OPTIMIZERS.toReversed().flatMap((family) => family.names.map((own) => [own, family] as const)));
  return byName.get(name);
}

export const refusalOf = (name: string): string =>
  REFUSED.find(([pattern]) => pattern.test(name))?.[1] ?? 'transformers has no optimizer of that name';
