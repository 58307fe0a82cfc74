import { adamwForeach, adamwFused } from './adamw.ts';
import type { OptimizerFamily } from './optimizer.ts';

/** Every optimizer family; a new one is a file and a line here. */
export const OPTIMIZERS: readonly OptimizerFamily[] = [adamwForeach, adamwFused];

export const findOptimizer = (name: string): OptimizerFamily | undefined =>
  OPTIMIZERS.find((family) => family.names.includes(name));
