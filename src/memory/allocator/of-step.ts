import type { ParameterGroup } from '../parameters.ts';
import { roundUp } from '../tape/tape.ts';
import type { StepInput, StepResult } from '../walk/step.ts';
import { loadShards, loadWhole } from './load.ts';
import { simulateReserved, type TensorList } from './simulate.ts';

/** Steps after which the pattern repeats: the first makes the optimizer's states, the second lives beside them. */
const STEPS = 2;

/** What the allocator meets that no allocation of a step shows, bytes. */
export interface AllocatorSetting {
  /** One cuBLAS workspace. */
  readonly workspaceBytes: number;
  /** A segment that the first loss leaves behind; 0: none. */
  readonly lossSegmentBytes: number;
}

/** Bytes reserved by a walked step whose allocations were recorded; undefined when they were not. */
export function simulatedReserve(
  input: StepInput,
  { script }: StepResult,
  setting: AllocatorSetting,
): number | undefined {
  if (script.length === 0) return undefined;
  const { residents, plan, values, shards } = input;
  const trainable = plan.groups.filter(({ parameter }) => parameter.trainable);
  const { statesBytes, temporaryBytes } = residents.optimizer;
  // Shards of other engines are parts of a few large buffers.
  const whole = residents.weightBytes === plan.residentBytes;
  const onDevice = residents.weightBytes > 0;
  return simulateReserved({
    load: (allocator) => {
      if (shards && onDevice) loadShards(allocator, input, shards);
      else if (whole) loadWhole(allocator, plan);
    },
    otherBytes:
      (shards || whole ? 0 : residents.weightBytes) +
      residents.referenceBytes +
      residents.lastingCommunicationBytes +
      // Gathered on a stream of its own: what is freed there serves nothing else.
      (shards ? residents.communicationBytes + 2 * residents.gathering.layerBytes : 0) +
      // Gradients of earlier micro batches are there throughout.
      (values.gradientAccumulationSteps > 1 ? residents.gradientBytes : 0),
    script,
    // Two moments a tensor; other optimizers' sums are spread alike.
    states: spread(trainable, statesBytes / 2).map((list) => ({ ...list, copies: 2 })),
    temporaries: spread(trainable, temporaryBytes),
    // Adapters are units of their own, and their gradients small.
    gradientShare: shards && values.method === 'full' ? shards.share * (shards.storesFp32 ? 2 : 1) : undefined,
    steps: STEPS,
    ...setting,
  });
}

/** A sum over all trainable tensors, cut as they are. */
function spread(groups: readonly ParameterGroup[], bytes: number): TensorList[] {
  if (bytes <= 0) return [];
  const total = groups.reduce((sum, { parameter, count }) => sum + parameter.bytes * count, 0);
  return groups.map(({ parameter, count }) => ({ bytes: roundUp((parameter.bytes / total) * bytes), count }));
}
