import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { contextBytes, type DeviceFacts } from './device.ts';
import type { MemoryEstimate, TermName } from './estimate.ts';
import { intervalsOf } from './intervals.ts';
import { fragmentationBytes, lossSegmentBytes } from './reserved.ts';
import type { Sharding } from './sharding.ts';
import { owner } from './tape/tape.ts';
import type { Peak } from './walk/timeline.ts';

const WEIGHTS = owner('weights');
const GRADIENTS = owner('gradients');
const STATES = owner('optimizerStates');
const ENGINE = owner('inferenceEngine');
const ACTIVATIONS = owner('activations');
const LOGITS = owner('logits');
const TEMPORARY = owner('temporaryBuffers');
const COMMUNICATION = owner('communicationBuffers');

type Sums = Omit<MemoryEstimate['vram'], 'peakPhase'>;

/** Allocated, reserved, device peak, the interval around it, and the terms that add up to it. */
export function devicePeak(
  values: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts,
  peak: Readonly<Peak>,
  sharding: Sharding,
  rowsPerRow: number,
  /** What the played allocator has reserved; undefined: segments grow in place, and it was not played. */
  simulatedBytes: number | undefined,
  /** As for `contextBytes`. */
  shardedBytes: number,
): Sums {
  const allocated = Math.round(peak.bytes);
  const wasted = fragmentationBytes({
    allocatedBytes: allocated,
    simulatedBytes,
    transientBytes: peak.owners[ACTIVATIONS]! + peak.owners[LOGITS]! + peak.owners[TEMPORARY]!,
    sharding,
    trainsUnits: values.method === 'full',
  });
  const context = contextBytes(device, sharding.ranks, shardedBytes);
  const at = (index: number): number => Math.round(peak.owners[index]!);
  // Rounding of shares may leave a byte or two: they belong to the largest transient owner.
  const rest = peak.owners.reduce((left, bytes) => left - Math.round(bytes), allocated);
  const terms: Record<TermName, number> = {
    weights: at(WEIGHTS),
    gradients: at(GRADIENTS),
    optimizerStates: at(STATES),
    activations: at(ACTIVATIONS),
    logits: at(LOGITS),
    temporaryBuffers: at(TEMPORARY) + rest,
    communicationBuffers: at(COMMUNICATION),
    inferenceEngine: at(ENGINE),
    fragmentation: wasted,
    cudaContext: context.bytes,
  };
  const reserved = allocated + wasted;
  return {
    allocatedPeakBytes: allocated,
    reservedPeakBytes: reserved,
    devicePeakBytes: reserved + context.bytes,
    ...intervalsOf({
      values,
      facts,
      sharding,
      rowsPerRow,
      allocatedBytes: allocated,
      fragmentationBytes: wasted,
      playsAllocator: simulatedBytes !== undefined,
      lossSegmentBytes: simulatedBytes === undefined ? 0 : lossSegmentBytes(values, facts, rowsPerRow),
      context,
      capacityBytes: device.capacityBytes,
    }),
    terms,
  };
}
