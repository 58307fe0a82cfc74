import type { RunEvent } from '../report/index.ts';
import type { CheckpointWriter } from './checkpoint-of-run.ts';
import type { PlannedAttempt } from './next-attempt.ts';
import type { Preflight } from './preflight.ts';
import type { MadeAttempt } from './run-attempts.ts';
import type { Ending } from './run-record.ts';

/** What follows an attempt: the end of the run, or another start. */
export type Decision =
  | { readonly kind: 'end'; readonly ending: Ending; readonly events: readonly RunEvent[] }
  | { readonly kind: 'retry'; readonly planned: PlannedAttempt; readonly events: readonly RunEvent[] };

export interface DecideRequest {
  readonly preflight: Preflight;
  /** Of this snug; the last one has just ended. */
  readonly made: readonly MadeAttempt[];
  /** Writers of checkpoints before `made`. */
  readonly before: readonly CheckpointWriter[];
  readonly maxRetries: number;
  /** Somebody asked the run to end. */
  readonly signalled: NodeJS.Signals | undefined;
}

/** The run is over. */
export const end = (ending: Ending, ...events: readonly RunEvent[]): Decision => ({ kind: 'end', ending, events });
