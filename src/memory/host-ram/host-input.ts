import type { ModelFacts } from '../../model/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import type { Sharding } from '../sharding.ts';
import type { Residents } from '../walk/step.ts';

/** What the terms of host RAM are worked out from. */
export interface HostInput {
  /** Settings, with the dtype the model is loaded in. */
  readonly values: PlanValues;
  readonly plan: ParameterPlan;
  readonly residents: Residents;
  readonly sharding: Sharding;
  readonly model: HostModel;
}

export interface HostModel {
  /** All parameters, tied ones once. */
  readonly parameters: number;
  /** Bytes of one weight in the checkpoint. */
  readonly storedWidth: 2 | 4;
  readonly hiddenSize: number;
  readonly layers: number;
  /** Elements of the largest weight. */
  readonly largestWeight: number;
  /** Rows that go through the model for one row of a batch. */
  readonly rowsPerRow: number;
}

export function hostModelOf(values: PlanValues, facts: ModelFacts, plan: ParameterPlan, rowsPerRow: number): HostModel {
  return {
    parameters: facts.parameters,
    storedWidth: (facts.checkpointDtype ?? values.dtype) === 'fp32' ? 4 : 2,
    hiddenSize: facts.hiddenSize,
    layers: facts.numHiddenLayers,
    largestWeight: plan.largestElements,
    rowsPerRow,
  };
}

/** Bytes of one weight as `from_pretrained` leaves it. */
export const loadedWidth = ({ values }: Pick<HostInput, 'values'>): 2 | 4 => (values.dtype === 'fp32' ? 4 : 2);

/** Named parts of host RAM, bytes. */
export type HostTerms = Readonly<Record<string, number>>;

/** `torch.Tensor.pin_memory` rounds every buffer up to a power of two (ATen/core/CachingHostAllocator.h). */
export const pinnedSize = (bytes: number): number => (bytes <= 1 ? bytes : 2 ** Math.ceil(Math.log2(bytes)));
