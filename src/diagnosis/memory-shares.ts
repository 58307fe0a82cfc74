import { GiB, MiB } from '../core/index.ts';
import type { AllocatorReport } from './allocator-report.ts';
import type { FailureKind, Trait } from './failure.ts';

/** Who holds the device, as far as one allocator message tells. */
export interface MemoryShares {
  /** What others hold, bytes; undefined where the message does not tell, or contradicts itself. */
  readonly othersBytes: number | undefined;
  /** The process's own share was in the message, so the others' is exact; else it rests on a typical context. */
  readonly measured: boolean;
  /** The figures cannot all be true (virtual memory of a sleeping pool, 2^64 from WSL): no arithmetic on them. */
  readonly inconsistent: boolean;
  /** The other processes the message lists. */
  readonly others: AllocatorReport['processes'];
  /** The other processes look like ranks of the same run. */
  readonly siblings: boolean;
}

/** Context, kernels and libraries of one process outside the allocator, typical lower bound. */
const CONTEXT = GiB;

/**
 * Works out what other processes hold. Total − free − own rather than the sum of the listed ones: drivers hold memory too.
 * Without a `this process` clause the listed process nearest to the allocator's own figure is the trainer itself (a container's
 * pid namespace hides that it is).
 */
export function sharesOf(report: AllocatorReport, treePids: readonly number[]): MemoryShares {
  const { totalBytes: total, freeBytes: free, allocatedBytes: allocated, reservedUnallocatedBytes: stranded } = report;
  const nothing = { othersBytes: undefined, measured: false, inconsistent: false, others: [], siblings: false };
  if (total === undefined) return nothing;
  const reserved = (allocated ?? 0) + (stranded ?? 0);
  if ((allocated ?? 0) > total || reserved > 1.05 * total) return { ...nothing, inconsistent: true };
  if (free === undefined || allocated === undefined) return nothing;

  const told = report.selfBytes !== undefined && report.selfBytes <= 2 * total ? report.selfBytes : undefined;
  const others = [...report.processes].sort(
    (left, right) => Math.abs(left.bytes - reserved - CONTEXT / 2) - Math.abs(right.bytes - reserved - CONTEXT / 2),
  );
  const self =
    told ?? (others.length > 0 && others[0]!.bytes >= 0.9 * reserved ? others.shift()!.bytes : reserved + CONTEXT);
  return {
    othersBytes: Math.max(0, total - free - self),
    measured: told !== undefined,
    inconsistent: false,
    others,
    siblings: areSiblings(others, treePids),
  };
}

/** Ranks started together have neighbouring pids and hold the same amount: each put the same thing on the wrong device. */
function areSiblings(others: AllocatorReport['processes'], treePids: readonly number[]): boolean {
  if (others.some((one) => treePids.includes(one.pid))) return true;
  if (others.length < 2) return false;
  const sizes = others.map((one) => one.bytes);
  const pids = others.map((one) => one.pid);
  const spread = Math.max(...sizes) - Math.min(...sizes);
  return spread <= 0.05 * Math.max(...sizes) && Math.max(...pids) - Math.min(...pids) <= 4 * others.length;
}

/** Drivers and desktops always hold a little; this much of a card is somebody's work. */
export const isMuch = (held: number, total: number): boolean => held > Math.max(GiB, 0.05 * total);

/** A kind the figures prove or suggest, and what else they leave possible. */
export interface Reading {
  readonly kind: FailureKind;
  readonly confidence: 'high' | 'medium' | 'low';
  readonly candidates: readonly FailureKind[];
  readonly traits?: readonly Trait[];
}

/** Reserve that lies around in a healthy run with rows of changing length; below it stranded memory is no explanation. */
const ORDINARY_SLACK = 0.05;
const CERTAIN_SLACK = 0.1;
const LARGE_SLACK = 0.15;

/**
 * Reads the cause off the figures. Order matters: a request no card of this size could serve is a wrong request; stranded reserve
 * that would have served it is fragmentation; memory held by others that would have served it is theirs to give back.
 */
export function readFigures(
  report: AllocatorReport,
  shares: MemoryShares,
  expandableSegments: boolean,
): Reading | undefined {
  if (report.garbageSize) return { kind: 'config_bug', confidence: 'medium', candidates: ['not_memory'] };
  if (shares.inconsistent) {
    return { kind: 'unknown', confidence: 'low', candidates: ['vram_capacity', 'vram_leak_growth'] };
  }
  const { triedBytes: tried, totalBytes: total, allocatedBytes: allocated } = report;
  const stranded = report.reservedUnallocatedBytes ?? 0;
  if (tried === undefined || total === undefined) return undefined;
  if (tried > total) return { kind: 'config_bug', confidence: 'high', candidates: [] };

  const share = stranded / total;
  const wouldServe = stranded >= tried;
  if ((wouldServe && share > CERTAIN_SLACK) || (share > LARGE_SLACK && stranded >= tried / 2)) {
    // Far more stranded than in use: an earlier and larger peak (loading, resuming) has left it behind.
    const leftBehind = stranded > 2 * (allocated ?? stranded) ? (['vram_load_spike'] as const) : [];
    if (expandableSegments) {
      return leftBehind.length > 0
        ? { kind: 'vram_load_spike', confidence: 'medium', candidates: ['vram_capacity', 'vram_leak_growth'] }
        : { kind: 'vram_capacity', confidence: 'low', candidates: ['vram_load_spike', 'vram_leak_growth'] };
    }
    return {
      kind: 'vram_fragmentation',
      confidence: wouldServe ? 'high' : 'medium',
      candidates: ['vram_capacity', ...leftBehind],
    };
  }
  const free = report.freeBytes ?? 0;
  const held = shares.othersBytes ?? 0;
  if (isMuch(held, total) && held + free >= tried) {
    return shares.siblings
      ? { kind: 'config_bug', confidence: 'medium', candidates: ['vram_other_process'] }
      : { kind: 'vram_other_process', confidence: 'high', candidates: ['vram_capacity'] };
  }
  if (tried > 0.5 * total && (allocated ?? total) < 0.2 * total) {
    return { kind: 'config_bug', confidence: 'medium', candidates: ['vram_capacity'] };
  }
  // At the margin both may help; 2 and 20 MiB are segment sizes, so such a request says only that the card is full.
  const marginal = wouldServe && share > ORDINARY_SLACK && tried > 20 * MiB && !expandableSegments;
  return marginal ? { kind: 'vram_capacity', confidence: 'high', candidates: ['vram_fragmentation'] } : undefined;
}
