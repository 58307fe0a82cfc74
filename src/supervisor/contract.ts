import type { Evidence } from '../diagnosis/index.ts';

/** One attempt: what to start and how to look after it. */
export interface AttemptRequest {
  readonly argv: readonly string[];
  /** Whole environment of the child. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** `output.log` of the attempt, both streams with the stream named. */
  readonly logPath: string;
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
}

/** A running attempt. `signal` passes a signal on; `ended` settles when no pid of the tree is left. */
export interface RunningAttempt {
  readonly pid: number | undefined;
  readonly signal: (name: NodeJS.Signals) => void;
  readonly ended: Promise<Evidence>;
}

export type StartAttempt = (request: AttemptRequest) => RunningAttempt;
