import type { EvidenceLine } from './failure.ts';

/** What was seen of one attempt: how the process tree ended, the lines that matched a signature, what was sampled. */
export interface Evidence {
  /** Exit code of the direct child; undefined when a signal ended it or it could not be started. */
  readonly exitCode: number | undefined;
  /** `SIGKILL`, …; set when a signal ended the direct child. */
  readonly signal: string | undefined;
  readonly startFailure: 'not-found' | 'not-executable' | 'other' | undefined;
  /** Why the tree was stopped by us, when it was. */
  readonly stoppedBecause: 'fatal-line' | 'forwarded-signal' | undefined;
  /** A signal from outside that was passed on (`SIGTERM`, `SIGINT`, …). */
  readonly forwardedSignal: string | undefined;
  /** Lines that matched a signature, first seen first, at most a few dozen. */
  readonly lines: readonly EvidenceLine[];
  /** The last lines of each rank / stream, for phase and for showing. */
  readonly tail: readonly string[];
  /** Rise of `oom_kill` in the cgroup's memory events while the attempt ran. */
  readonly cgroupOomKills: number;
  /** Highest resident set of the tree, bytes; 0 when not sampled. */
  readonly peakRamBytes: number;
  /** Highest device memory seen for the run's GPUs, bytes; undefined: no driver. */
  readonly peakVramBytes: number | undefined;
}
