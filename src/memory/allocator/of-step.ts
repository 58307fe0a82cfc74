import type { ParameterGroup } from '../parameters.ts';
import { roundUp } from '../tape/tape.ts';
import type { StepInput, StepResult } from '../walk/step.ts';
import { simulateReserved, type TensorList } from './simulate.ts';

/** Steps after which the pattern repeats: the first makes the optimizer's states, the second lives beside them. */
const STEPS = 2;

/** Bytes reserved by a walked step whose allocations were recorded; undefined when they were not. */
export function simulatedReserve({ residents, plan, values }: StepInput, { script }: StepResult): number | undefined {
  if (script.length === 0) return undefined;
  const trainable = plan.groups.filter(({ parameter }) => parameter.trainable);
  const { statesBytes, temporaryBytes } = residents.optimizer;
  return simulateReserved({
    residentBytes:
      residents.weightBytes +
      residents.referenceBytes +
      residents.lastingCommunicationBytes +
      // Gradients of earlier micro batches are there throughout.
      (values.gradientAccumulationSteps > 1 ? residents.gradientBytes : 0),
    script,
    // Two moments a tensor; other optimizers' sums are spread alike.
    states: [...spread(trainable, statesBytes / 2), ...spread(trainable, statesBytes / 2)],
    temporaries: spread(trainable, temporaryBytes),
    steps: STEPS,
  });
}

/** A sum over all trainable tensors, cut as they are. */
function spread(groups: readonly ParameterGroup[], bytes: number): TensorList[] {
  if (bytes <= 0) return [];
  const total = groups.reduce((sum, { parameter, count }) => sum + parameter.bytes * count, 0);
  return groups.map(({ parameter, count }) => ({ bytes: roundUp((parameter.bytes / total) * bytes), count }));
}
