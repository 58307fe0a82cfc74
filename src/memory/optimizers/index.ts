import { adafactor } from './adafactor.ts';
import { adamwForeach, adamwFused } from './adamw.ts';
import { bitsandbytes } from './bitsandbytes.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { sgd } from './sgd.ts';

/** Every optimizer family; a new one is a file and a line here. */
export const OPTIMIZERS: readonly OptimizerFamily[] = [adamwForeach, adamwFused, adafactor, sgd, ...bitsandbytes];

export const findOptimizer = (name: string): OptimizerFamily | undefined =>
  OPTIMIZERS.find((family) => family.names.includes(name));
