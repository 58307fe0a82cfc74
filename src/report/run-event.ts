import type { EvidenceLine, Failure, MemoryGrowth, Slowdown } from '../diagnosis/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import type { Distributed, SpecChange } from '../spec/index.ts';
import type { HostRamOut } from './host-ram-text.ts';

/** How an attempt's process tree ended: a code, or a signal, or it could not be started. */
export interface AttemptEnd {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

/** What happens while a run is looked after, in the order it happens. Attempts count from 1. */
export type RunEvent =
  | {
      readonly kind: 'attempt-started';
      readonly attempt: number;
      readonly argv: readonly string[];
      /** From the launch as it came. */
      readonly changes: readonly SpecChange[];
      readonly predicted: MemoryEstimate | undefined;
    }
  /** A line that ends the run was seen, though the processes may live on. */
  | { readonly kind: 'fatal-line'; readonly line: EvidenceLine }
  | { readonly kind: 'stopping-tree'; readonly because: string; readonly graceMs: number }
  | {
      readonly kind: 'signal-forwarded';
      readonly signal: string;
      /** Requests to end so far, this one counted: the second stops the tree, the third kills it; 0: only a warning. */
      readonly requests: number;
    }
  /** No output for a long time. */
  | {
      readonly kind: 'stalled';
      readonly quietMs: number;
      /** Cores the run keeps busy; undefined: not known. */
      readonly busyCores: number | undefined;
      readonly processes: number | undefined;
      /** The run is ended for it. */
      readonly stops: boolean;
    }
  /** Memory has grown with the steps so far, and will be used up before they are over. */
  | {
      readonly kind: 'memory-grows';
      readonly memory: 'vram' | 'ram';
      readonly growth: MemoryGrowth;
    }
  /** Steps take far longer than they did, while memory is used up. */
  | ({ readonly kind: 'slowed-down' } & Slowdown)
  /** No setting stops the growth; a fresh process begins without what the last one had gathered. */
  | { readonly kind: 'same-again'; readonly because: string }
  /** The tree is gone and the driver still counts its memory. */
  | { readonly kind: 'gpu-memory-waiting'; readonly heldBytes: number; readonly timeoutMs: number }
  | { readonly kind: 'gpu-memory-freed'; readonly waitedMs: number }
  | { readonly kind: 'gpu-memory-stuck'; readonly heldBytes: number; readonly waitedMs: number }
  | {
      readonly kind: 'attempt-ended';
      readonly attempt: number;
      readonly end: AttemptEnd;
      readonly durationMs: number;
      /** undefined: it ended well. */
      readonly failure: Failure | undefined;
      readonly predicted: MemoryEstimate | undefined;
      /** Highest device memory seen on one GPU, bytes; undefined: no driver. */
      readonly peakVramBytes: number | undefined;
      /** Highest resident set of the tree, bytes; 0: not sampled. */
      readonly peakRamBytes: number;
      /** A signal to snug that was passed on. */
      readonly forwardedSignal?: string | undefined;
      /** RAM of the machine, bytes. */
      readonly hostRamBytes?: number | undefined;
      /** Smallest memory limit of the cgroups around the run, bytes; undefined: none, or not read. */
      readonly cgroupLimitBytes?: number | undefined;
    }
  | {
      readonly kind: 'replanned';
      readonly because: string;
      readonly changes: readonly SpecChange[];
      readonly predicted: MemoryEstimate | undefined;
      /** Scaled by what the failure showed, bytes. */
      readonly calibratedBytes: number | undefined;
      readonly distributed: Distributed | undefined;
    }
  /** A run that was broken off goes on in its own folder. */
  | { readonly kind: 'continuing'; readonly runFolder: string; readonly attempts: number }
  /** snug's watcher is still ending the trainer of the run that is to be continued. */
  | { readonly kind: 'waiting-for-watcher'; readonly pid: number }
  /** A checkpoint that is not whole is passed over, and left where it is. */
  | { readonly kind: 'checkpoint-skipped'; readonly checkpoint: string; readonly reason: string }
  /** A resumed attempt ended with exit code 0 and trained nothing. */
  | { readonly kind: 'made-no-step'; readonly checkpoint: string }
  /** The trainer's own batch search is off: snug's retries keep the global batch, and two searchers must not nest. */
  | { readonly kind: 'batch-search-off' }
  /** The trainer would take the checkpoint's batch over the flag; a stand-in with links to its files carries the planned one. */
  | {
      readonly kind: 'checkpoint-batch';
      readonly checkpoint: string;
      readonly carries: number;
      readonly batch: number;
    }
  | { readonly kind: 'resuming'; readonly checkpoint: string; readonly step: number | undefined }
  | { readonly kind: 'starting-over'; readonly outputDir: string | undefined; readonly reason: string }
  | { readonly kind: 'given-up'; readonly reason: string; readonly wouldHelp: readonly string[] }
  /** It ended for want of host RAM, which no retry of snug's changes. */
  | ({ readonly kind: 'host-ram-out' } & HostRamOut)
  | { readonly kind: 'finished'; readonly attempts: number; readonly durationMs: number };
