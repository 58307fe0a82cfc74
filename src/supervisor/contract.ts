import type { Evidence, OutputStream } from '../diagnosis/index.ts';
import type { InTerminal } from './pseudo-terminal.ts';
import type { Stall } from './stall-watch.ts';
import type { TrendWatchOptions } from './trend-watch.ts';
import type { Watcher } from './watcher/start-watcher.ts';

/** One attempt: what to start and how to look after it. */
export interface AttemptRequest {
  readonly argv: readonly string[];
  /** Whole environment of the child. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** `output.log` of the attempt, both streams with the stream named. */
  readonly logPath: string;
  /** Past it only head and tail of the log are kept; default 1 GiB. */
  readonly logLimitBytes?: number | undefined;
  /** Values that the log does not keep. */
  readonly secrets?: readonly string[];
  readonly samplesPath: string;
  /** Where the child's bytes go, at once and unchanged. */
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Reads device memory in use of the run's GPUs, bytes; undefined: no driver. */
  readonly sampleVram: (() => Promise<number | undefined>) | undefined;
  readonly sampleEveryMs: number;
  /** After a fatal memory line the tree has this long to end by itself. */
  readonly fatalLineGraceMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly stopGraceMs: number;
  /** How long processes that outlive the direct child may go on by themselves (and hold its pipes); default `defaultTimings.drainMs`. */
  readonly drainMs?: number;
  /**
   * `true`: the child stays in our own process group, so that it may read from the terminal and Ctrl-C, Ctrl-Z reach it from
   * there; `false`: a session of its own. Default: whether stdin is a terminal.
   */
  readonly foreground?: boolean;
  /** Start it in a pseudo-terminal, whose one stream is `stdout`. */
  readonly terminal?: InTerminal | undefined;
  /** Where the trainer saves, absolute: while files grow there, a kill waits. */
  readonly outputDir?: string | undefined;
  /** What to do about a run that has gone silent; absent: nothing. */
  readonly stall?: {
    readonly afterMs: number;
    /** Whether it is ended. */
    readonly stop: boolean;
    readonly onStall: (stall: Stall) => void;
  };
  /** What the samples are measured against, and who is told what they show; each at most once. */
  readonly trends?: Omit<TrendWatchOptions, 'plannedSteps'>;
  /** Ends the attempt should we be killed; absent: then the trainer ends at its next line of output. */
  readonly watcher?: Watcher | undefined;
  /** `PYTORCH_CUDA_ALLOC_CONF` of the attempt had `expandable_segments:True`; handed on to the evidence. */
  readonly expandableSegments?: boolean;
}

/**
 * A running attempt. `signal` passes a signal on to the leader of the tree, once; the second request to end (INT, TERM, HUP,
 * QUIT) stops the whole tree, the third one kills it. `ended` settles when no pid of the tree is left. It never rejects.
 */
export interface RunningAttempt {
  readonly pid: number | undefined;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Somebody is about to write to the terminal: the streams that are in the middle of a line, which count as ended from then on. */
  readonly interrupt: () => readonly OutputStream[];
  readonly ended: Promise<Evidence>;
}

export type StartAttempt = (request: AttemptRequest) => RunningAttempt;
