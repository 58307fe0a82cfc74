import { MiB } from '../core/index.ts';

export interface ReservedInput {
  readonly allocatedBytes: number;
  /** What comes and goes within a step at the peak, bytes. */
  readonly transientBytes: number;
  /** Layers are gathered and freed on streams of their own (FSDP, ZeRO-3), and how much at a time, bytes. */
  readonly gatheredBytes: number;
  /** One fp32 tensor of all logits, bytes; 0 when they are never whole. */
  readonly logitsBytes: number;
  /** transformers before 4.50: the loss makes two such tensors more. */
  readonly olderLoss: boolean;
  /** `PYTORCH_CUDA_ALLOC_CONF`. */
  readonly allocatorConf: string;
}

/** Segments of tensors between 1 and 10 MiB are 20 MiB; larger ones are rounded to 2 MiB (c10/cuda/CUDACachingAllocator). */
const SEGMENT = 20 * MiB;

/**
 * What the caching allocator has reserved when the run is at its allocated peak. Freed blocks stay cached and are reused
 * only where they fit: small transients leave holes (taken as 1.5 % of them), and blocks as large as the logits are cut up
 * for smaller tensors before they are needed whole again. The share of the logits is fitted to published pairs of
 * allocated and reserved memory: 1.8 such tensors with transformers 4.48, about a quarter with 5.x. Where layers are gathered
 * on other streams, freed blocks wait for those streams and are asked for again meanwhile: published FSDP runs hold 15 % of
 * the transients and one more set of gathered layers. Expandable segments leave none of it.
 */
export function fragmentationOf(input: ReservedInput): { readonly bytes: number; readonly highBytes: number } {
  if (/expandable_segments\s*:\s*true/i.test(input.allocatorConf)) {
    const bytes = roundToSegment(input.allocatedBytes * 1.005) - input.allocatedBytes;
    return { bytes, highBytes: bytes + Math.ceil(input.transientBytes * 0.02) };
  }
  const logits = input.logitsBytes * (input.olderLoss ? 1.8 : 0.25);
  const gathers = input.gatheredBytes > 0;
  const holes = input.transientBytes * (gathers ? 0.15 : 0.015) + input.gatheredBytes;
  const bytes = roundToSegment(input.allocatedBytes + logits + holes) - input.allocatedBytes;
  const highBytes = bytes + Math.ceil(input.logitsBytes + input.transientBytes * (gathers ? 0.3 : 0.03));
  return { bytes, highBytes };
}

const roundToSegment = (bytes: number): number => Math.ceil(bytes / SEGMENT) * SEGMENT;
