import { roundUp } from '../tape/tape.ts';
import type { StepInput, StepResult } from '../walk/step.ts';
import { loadShards } from './load.ts';
import { loadWholeMany } from './load-many.ts';
import { type ReserveInput, reservedBytes, type TensorList } from './reserve.ts';

/** Steps after which the pattern repeats: the first makes the optimizer's states, and the second lives beside them and its holes. */
const STEPS = 2;

/** What the allocator meets that no allocation of a step shows, bytes. */
export interface AllocatorSetting {
  /** One cuBLAS workspace. */
  readonly workspaceBytes: number;
  /** A segment that the first loss leaves behind; 0: none. */
  readonly lossSegmentBytes: number;
}

/** Bytes reserved by a walked step; undefined when its allocations were not recorded. */
export type ReserveOfStep = (input: StepInput, step: StepResult, setting: AllocatorSetting) => number | undefined;

/** Bytes reserved by a walked step whose allocations were recorded, equal layers at once; undefined when they were not. */
export function reservedByStep(input: StepInput, step: StepResult, setting: AllocatorSetting): number | undefined {
  if (step.script.length === 0) return undefined;
  const { shards, plan } = input;
  const { loads, ...playing } = playingOf(input, step, setting);
  return reservedBytes({
    load: (pools) => {
      if (loads === 'shards') loadShards(pools, input, shards!);
      else if (loads === 'whole') loadWholeMany(pools, plan);
    },
    ...playing,
  });
}

/** What is played of a step, and how its weights are loaded. */
export function playingOf(
  input: StepInput,
  { script }: StepResult,
  setting: AllocatorSetting,
): Omit<ReserveInput, 'load'> & { readonly loads: 'shards' | 'whole' | 'nothing' } {
  const { residents, plan, values, shards } = input;
  const { statesBytes, temporaryBytes } = residents.optimizer;
  // Shards of other engines are parts of a few large buffers.
  const whole = residents.weightBytes === plan.residentBytes;
  const onDevice = residents.weightBytes > 0;
  const { strategy } = values.distributed;
  const offloads = values.method === 'full' && values.distributed.offload.includes('optimizer');
  // Gradients are copied into a bucket as they come, and what is reduced of them into a buffer made before the first step.
  const partitions = strategy === 'zero2' || strategy === 'zero3';
  return {
    loads: shards && onDevice ? 'shards' : whole ? 'whole' : 'nothing',
    otherBytes:
      (shards || whole ? 0 : residents.weightBytes) +
      residents.referenceBytes +
      residents.lastingCommunicationBytes +
      // Gathered on a stream of its own: what is freed there serves nothing else.
      (shards ? residents.communicationBytes + 2 * residents.gathering.layerBytes : 0) +
      residents.awaitedBytes +
      (partitions ? residents.gradientBytes : residents.accumulatedBytes),
    script,
    // Two moments a tensor; other optimizers' sums are spread alike.
    states: spread(plan, statesBytes / 2, 2),
    temporaries: spread(plan, temporaryBytes, 1),
    // Adapters are units of their own, and their gradients small.
    // Gradients that go to the host as they come leave nothing here; of FSDP's the joined ones are here on their way.
    gradientShare:
      shards && values.method === 'full'
        ? offloads
          ? Number.EPSILON
          : shards.share * (shards.storesFp32 ? 2 : 1)
        : partitions || offloads
          ? 0
          : undefined,
    steps: STEPS,
    // Of a sharded layer the joined gradients are there while the next ones run.
    lead: shards ? 2 : 1,
    ...setting,
  };
}

/** A sum over all trainable tensors, cut as they are, `copies` times. */
function spread({ groups }: StepInput['plan'], bytes: number, copies: number): TensorList[] {
  const lists: TensorList[] = [];
  if (bytes <= 0) return lists;
  let total = 0;
  for (const { parameter, count } of groups) if (parameter.trainable) total += parameter.bytes * count;
  for (const { parameter, count } of groups) {
    if (!parameter.trainable) continue;
    lists.push({ bytes: roundUp((parameter.bytes / total) * bytes), count: count * copies });
  }
  return lists;
}
