import type { ModelFacts } from '../../model/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import { cardSpeed } from './card-speed.ts';
import { stepSeconds } from './step-time.ts';
import { workloadOf } from './workload.ts';

export { type CardSpeed, cardSpeed } from './card-speed.ts';
export { stepSeconds } from './step-time.ts';
export { type Workload, workloadOf } from './workload.ts';

/** Predicted seconds of an optimizer step by its settings, for a model on a card; good for ratios, not as a promise. */
export function stepPredictor(
  facts: ModelFacts,
  computeCapability: { readonly major: number; readonly minor: number } | undefined,
): (values: PlanValues) => number {
  const work = workloadOf(facts);
  const speed = cardSpeed(computeCapability);
  return (values) => stepSeconds(values, work, speed);
}
