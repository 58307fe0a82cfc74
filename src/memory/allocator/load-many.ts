import { roundUp } from '../tape/tape.ts';
import type { StepInput } from '../walk/step.ts';
import type { Pools } from './pools.ts';

/** Weights as `loadWhole` makes them, equal ones at once. */
export function loadWholeMany(pools: Pools, { groups, quantised }: StepInput['plan']): void {
  for (const { parameter, count } of groups) pools.allocate(parameter.bytes, count);
  for (const { weight, count } of quantised) {
    const dense = pools.allocate(roundUp(weight.elements * 2));
    pools.allocate(weight.bytes, count);
    pools.release(dense);
  }
}
