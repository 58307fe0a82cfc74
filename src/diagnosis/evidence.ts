import type { EvidenceLine } from './failure.ts';
import type { MemoryGrowth } from './memory-trend.ts';
import type { Slowdown } from './slowdown.ts';

/** What was seen of one attempt: how the process tree ended, the lines that matched a signature, what was sampled. */
export interface Evidence {
  /** Exit code of the direct child; undefined when a signal ended it or it could not be started. */
  readonly exitCode: number | undefined;
  /** `SIGKILL`, …; set when a signal ended the direct child. */
  readonly signal: string | undefined;
  readonly startFailure: 'not-found' | 'not-executable' | 'other' | undefined;
  /** Why the tree was stopped by us, when it was. */
  readonly stoppedBecause: 'fatal-line' | 'forwarded-signal' | 'stall' | undefined;
  /** A signal from outside that was passed on (`SIGTERM`, `SIGINT`, …). */
  readonly forwardedSignal: string | undefined;
  /** Lines that matched a signature, first seen first, at most a few dozen. */
  readonly lines: readonly EvidenceLine[];
  /** The last lines of each rank / stream, for phase and for showing. */
  readonly tail: readonly string[];
  /** A line said that training was done, and no other began after it. */
  readonly finished?: boolean;
  /** Signs of training steps in the output: bars that moved on, new losses. */
  readonly stepsSeen?: number;
  /** Streams whose last byte was no line end. */
  readonly unfinishedLines?: readonly ('stdout' | 'stderr')[];
  /** Rise of `oom_kill` in the cgroup's memory events while the attempt ran. */
  readonly cgroupOomKills: number;
  /** Highest resident set of the tree, bytes; 0 when not sampled. */
  readonly peakRamBytes: number;
  /** The most of the tree that was in swap at one moment, bytes; absent: not sampled. */
  readonly peakSwapBytes?: number;
  /** Highest device memory seen for the run's GPUs, bytes; undefined: no driver. */
  readonly peakVramBytes: number | undefined;
  /** Smallest memory limit of the cgroups around the run, bytes; null: read, and there is none; absent: not read. */
  readonly cgroupLimitBytes?: number | null;
  /** RAM of the machine, bytes. */
  readonly hostRamBytes?: number;
  /** Rise of the machine's own OOM-kill count while the attempt ran; kills of strangers are in it too. */
  readonly hostOomKills?: number;
  /** The least that was free on /dev/shm and on the volume that is saved to, bytes; absent: not sampled, or not known. */
  readonly leastFreeBytes?: { readonly shm?: number; readonly disk?: number };
  /** Device memory that grew over the steps until the end; absent: it did not, or was not sampled. */
  readonly vramGrowth?: MemoryGrowth;
  /** RAM of the tree that did. */
  readonly ramGrowth?: MemoryGrowth;
  /** Steps that had become far slower while memory was used up. */
  readonly slowdown?: Slowdown;
  /** Every pid seen in the attempt's tree: `Process N has` with one of these is a sibling rank, not a stranger. */
  readonly treePids?: readonly number[];
  /** `expandable_segments:True` was in effect, so stranded reserve is not what that setting would cure. */
  readonly expandableSegments?: boolean;
  /** Pids that were still there after SIGKILL and the wait for it (uninterruptible sleep in a driver). */
  readonly survivors?: readonly number[];
}
