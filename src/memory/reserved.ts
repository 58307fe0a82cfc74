import { MiB } from '../core/index.ts';

export interface ReservedInput {
  readonly allocatedBytes: number;
  /** What comes and goes within a step at the peak, bytes. */
  readonly transientBytes: number;
  /** Layers are gathered and freed on streams of their own (FSDP, ZeRO-3), and how much at a time, bytes. */
  readonly gatheredBytes: number;
  /** Quantised weights that were whole on the device before they were sharded, and are not any more, bytes. */
  readonly loadedBytes: number;
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
 * the transients and one more set of gathered layers. Quantised weights are made on the device whole; of what sharding frees of
 * them most stays cached in pieces too small for activations. Simulated runs with transformers before 4.49 hold 0.75 tensors of
 * all logits less than published ones whose peak is the loss. Expandable segments leave none of it.
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
    unsimulatedBytes: input.gatheredBytes + input.loadedBytes + (input.olderLoss ? 0.75 * input.logitsBytes : 0),
  };
}

const roundToSegment = (bytes: number): number => Math.ceil(bytes / SEGMENT) * SEGMENT;
