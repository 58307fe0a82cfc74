import { MiB } from '../core/index.ts';
import { type AllocatorReport, readWrapped } from './allocator-report.ts';
import type { Failure } from './failure.ts';
import { isMuch, type MemoryShares, sharesOf } from './memory-shares.ts';
import { signatureById } from './signatures/index.ts';

/** Why the figures of a message cannot be calculated with. */
export type FigureFault =
  /** More in use than the card has: virtual memory of a sleeping pool. */
  | 'more-than-card'
  /** 2^64 bytes and the like for the process's own share: WSL and containers do not know it. */
  | 'own-share-unknown'
  /** A request of exabytes: a size that was never meant. */
  | 'garbage-size';

/** An allocator's message worked out, bytes; what it does not tell is absent. */
export interface Arithmetic {
  readonly device?: number;
  readonly triedBytes?: number;
  readonly totalBytes?: number;
  readonly freeBytes?: number;
  /** Tensors. */
  readonly allocatedBytes?: number;
  /** Cached in pieces and not in use. */
  readonly strandedBytes?: number;
  /** Context, kernels, libraries and pools of this process outside the caching allocator. */
  readonly besideBytes?: number;
  /** Held by other processes. */
  readonly othersBytes?: number;
  /** The processes the message lists beside this one. */
  readonly others: readonly { readonly pid: number; readonly bytes: number }[];
  /** Asked for and not free: what was missing for this one request. */
  readonly shortBytes?: number;
  /** `true`: the request is the allocator's smallest segment, which says only that the card is full. */
  readonly smallestSegment: boolean;
  /** `true`: so little was missing that one step of one setting is enough. */
  readonly nearMiss: boolean;
  /** `true`: what lies stranded would have served the request. */
  readonly strandedWouldServe: boolean;
  /** `true`: no card of this size could serve the request, were it empty. */
  readonly impossible: boolean;
  readonly fault?: FigureFault;
}

/** Requests up to 1 MiB ask the driver for 2 MiB, up to 10 MiB for 20: torch `c10/cuda/CUDACachingAllocator.cpp`. */
const SMALLEST_SEGMENTS: readonly number[] = [2 * MiB, 20 * MiB];
const NEAR = 0.02;

function faultOf(report: AllocatorReport, shares: MemoryShares): FigureFault | undefined {
  if (report.garbageSize) return 'garbage-size';
  if (shares.inconsistent) return 'more-than-card';
  const { selfBytes, totalBytes } = report;
  return selfBytes !== undefined && totalBytes !== undefined && selfBytes > 2 * totalBytes
    ? 'own-share-unknown'
    : undefined;
}

const minus = (left: number | undefined, ...rest: readonly (number | undefined)[]): number | undefined =>
  left === undefined || rest.includes(undefined)
    ? undefined
    : Math.max(0, left - rest.reduce<number>((sum, bytes) => sum + bytes!, 0));

/** Does the sums a reader would do with the message of a device allocation that failed; undefined: there are no figures. */
export function workOut(failure: Failure): Arithmetic | undefined {
  const [main] = failure.evidence;
  const read = main?.signature === undefined ? undefined : signatureById(main.signature)?.read;
  if (!main || !read || failure.resource !== 'vram') return undefined;
  const report = readWrapped(main.text, read);
  const { triedBytes, totalBytes, freeBytes, allocatedBytes, reservedUnallocatedBytes: strandedBytes } = report;
  if (triedBytes === undefined && totalBytes === undefined && !report.garbageSize) return undefined;
  const shares = sharesOf(report, []);
  const fault = faultOf(report, shares);
  const sound = fault === undefined || fault === 'own-share-unknown';
  const selfBytes = fault === undefined ? report.selfBytes : undefined;
  const shortBytes = sound && totalBytes !== undefined ? minus(triedBytes, freeBytes) : undefined;
  const smallestSegment = triedBytes !== undefined && SMALLEST_SEGMENTS.includes(triedBytes);
  const strandedWouldServe = sound && triedBytes !== undefined && (strandedBytes ?? 0) >= triedBytes;
  const told = report.othersBytes ?? (shares.measured ? shares.othersBytes : undefined);
  const guessed = isMuch(shares.othersBytes ?? 0, totalBytes ?? 0) ? shares.othersBytes : undefined;
  const figures = {
    device: report.device,
    triedBytes,
    totalBytes,
    freeBytes,
    allocatedBytes: fault === 'more-than-card' ? undefined : allocatedBytes,
    strandedBytes: fault === 'more-than-card' ? undefined : strandedBytes,
    besideBytes: minus(selfBytes, allocatedBytes, strandedBytes),
    othersBytes: told ?? guessed,
    shortBytes,
    fault,
  };
  return {
    ...(Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined)) as Partial<Arithmetic>),
    others: shares.others,
    smallestSegment,
    nearMiss:
      failure.kind === 'vram_capacity' &&
      !smallestSegment &&
      !strandedWouldServe &&
      shortBytes !== undefined &&
      totalBytes !== undefined &&
      shortBytes < NEAR * totalBytes,
    strandedWouldServe,
    impossible: sound && triedBytes !== undefined && totalBytes !== undefined && triedBytes > totalBytes,
  };
}
