import { MiB } from '../core/index.ts';
import type { ModelFacts } from '../model/index.ts';
import type { LossImpl, PlanValues } from '../spec/index.ts';
import type { Sharding } from './sharding.ts';
import { versionFacts } from './versions.ts';

export interface ReservedInput {
  readonly allocatedBytes: number;
  /** What comes and goes within a step at the peak, bytes. */
  readonly transientBytes: number;
  /** Layers are gathered and freed on streams of their own (FSDP, ZeRO-3), and how much at a time, bytes. */
  readonly gatheredBytes: number;
  readonly sharding: Pick<Sharding, 'engine' | 'weightShare'>;
  /** All weights are trained: units have gradients of their size. */
  readonly trainsUnits: boolean;
  /** One fp32 tensor of all logits, bytes; 0 when they are never whole or gone at the peak. */
  readonly logitsBytes: number;
  /** transformers before 4.50: the loss makes two such tensors more. */
  readonly olderLoss: boolean;
  /** `PYTORCH_CUDA_ALLOC_CONF`. */
  readonly allocatorConf: string;
}

/** Segments of tensors between 1 and 10 MiB are 20 MiB; larger ones are rounded to 2 MiB (c10/cuda/CUDACachingAllocator). */
const SEGMENT = 20 * MiB;

export interface Fragmentation {
  readonly bytes: number;
  /** Segments grow in place: nothing is stuck, whatever a simulation without them says. */
  readonly expandable: boolean;
  /** What a simulation of one stream does not see. */
  readonly unsimulatedBytes: number;
}

/**
 * What the caching allocator has reserved when the run is at its allocated peak. Freed blocks stay cached and are reused
 * only where they fit: small transients leave holes (taken as 1.5 % of them), and blocks as large as the logits are cut up
 * for smaller tensors before they are needed whole again. The share of the logits is fitted to published pairs of
 * allocated and reserved memory: 1.8 such tensors with transformers 4.48, about a quarter with 5.x. Where layers are gathered
 * on other streams, freed blocks wait for those streams and are asked for again meanwhile: published FSDP runs hold 15 % of
 * the transients and one more set of gathered layers. Expandable segments leave none of it.
 */
export function fragmentationOf(input: ReservedInput): Fragmentation {
  if (/expandable_segments\s*:\s*true/i.test(input.allocatorConf)) {
    const bytes = roundToSegment(input.allocatedBytes * 1.005) - input.allocatedBytes;
    return { bytes, expandable: true, unsimulatedBytes: 0 };
  }
  const logits = input.logitsBytes * (input.olderLoss ? 1.8 : 0.25);
  const gathers = input.gatheredBytes > 0;
  const holes = input.transientBytes * (gathers ? 0.15 : 0.015) + input.gatheredBytes;
  const bytes = roundToSegment(input.allocatedBytes + logits + holes) - input.allocatedBytes;
  return {
    bytes,
    expandable: false,
    unsimulatedBytes: unsimulated(input),
  };
}

/**
 * What the simulation does not hold: DeepSpeed's second set of gathered layers, and under FSDP the activations that are asked for
 * while joined gradients wait for the reduction: a fifth of the transients in published runs.
 */
function unsimulated({ sharding, trainsUnits, gatheredBytes, transientBytes }: ReservedInput): number {
  if (sharding.engine === 'deepspeed') return gatheredBytes;
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
