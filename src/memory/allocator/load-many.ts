import { roundUp } from '../tape/tape.ts';
import type { StepInput } from '../walk/step.ts';
import type { Pools } from './pools.ts';

/** Weights as `loadWhole` makes them, equal ones at once: of a 16-bit tensor the room serves the next one. */
export function loadWholeMany(pools: Pools, { groups, quantised }: StepInput['plan']): void {
  for (const { parameter, count } of groups) pools.hold(parameter.bytes, count);
  for (const { weight, count } of quantised) {
    const dense = pools.allocate(roundUp(weight.elements * 2));
    pools.hold(weight.bytes, count);
    pools.release(dense);
  }
}
