import { MiB } from '../core/index.ts';
import type { ModelFacts } from '../model/index.ts';
import type { LossImpl, PlanValues } from '../spec/index.ts';
import type { Sharding } from './sharding.ts';
import { versionFacts } from './versions.ts';

export interface ReservedInput {
  readonly allocatedBytes: number;
  /** What comes and goes within a step at the peak, bytes. */
  readonly transientBytes: number;
  /** What the played allocator has reserved; undefined where segments grow in place and nothing was played. */
  readonly simulatedBytes: number | undefined;
  readonly sharding: Pick<Sharding, 'engine' | 'weightShare'>;
  /** All weights are trained: units have gradients of their size. */
  readonly trainsUnits: boolean;
}

/** Segments of tensors between 1 and 10 MiB are 20 MiB; larger ones are rounded to 2 MiB (c10/cuda/CUDACachingAllocator). */
const SEGMENT = 20 * MiB;

/** Whether `PYTORCH_CUDA_ALLOC_CONF` lets segments grow in place: nothing is stuck then. */
export const hasExpandableSegments = (allocatorConf: string): boolean =>
  /expandable_segments\s*:\s*true/i.test(allocatorConf);

/**
 * What the caching allocator has reserved beside what is allocated at the peak, bytes: what playing every allocation shows, and what
 * that does not hold. Expandable segments leave none of it.
 */
export function fragmentationBytes(input: ReservedInput): number {
  const { allocatedBytes, simulatedBytes } = input;
  if (simulatedBytes === undefined) return roundToSegment(allocatedBytes * 1.005) - allocatedBytes;
  return Math.max(0, Math.ceil(simulatedBytes + unsimulated(input)) - allocatedBytes);
}

/**
 * What the simulation does not hold: under FSDP the activations that are asked for while joined gradients wait for the reduction: a
 * fifth of the transients in published runs.
 */
function unsimulated({ sharding, trainsUnits, transientBytes }: ReservedInput): number {
  return sharding.engine === 'fsdp' && sharding.weightShare < 1 && trainsUnits ? 0.2 * transientBytes : 0;
}

/** Part of the fp32 logits that a loss before transformers 4.49 leaves cached and cut up, by what runs on them. */
const LEFT_OF_LOGITS: Readonly<Record<LossImpl, number>> = {
  full: 0.5,
  fused_logits: 1,
  chunked: 0,
  chunked_logits: 0,
  fused: 0,
};

/**
 * A segment that the first loss leaves behind, bytes. Published runs with transformers 4.45 and 4.48 reserve one tensor of all
 * logits more than a simulation of their allocations where one kernel makes loss and gradient, half of one where PyTorch's functions
 * do, and none where the model scales its logits, which takes a second 16-bit tensor. Fitted to nvidia-smi.
 */
export function lossSegmentBytes(values: PlanValues, facts: ModelFacts, rowsPerRow: number): number {
  const { shiftsLogits } = versionFacts(values.versions);
  if (!shiftsLogits || facts.description.head.scaled || values.objective === 'classification') return 0;
  const rows = values.perDeviceTrainBatchSize * rowsPerRow * values.maxLength;
  return Math.ceil(LEFT_OF_LOGITS[values.lossImpl] * rows * facts.vocabSize * 4);
}

const roundToSegment = (bytes: number): number => Math.ceil(bytes / SEGMENT) * SEGMENT;
