import type { Diagnostic, Ports } from '../core/index.ts';
import type { Failure } from '../diagnosis/index.ts';
import { maskKnown, maskSecrets, secretsIn, snakeCased } from '../report/index.ts';
import type { RunFolder } from './run-folder.ts';

/** Whose exit code it is, and why. */
export type Ending =
  | { readonly whose: 'trainer'; readonly exitCode: number | undefined; readonly signal: string | undefined }
  | {
      readonly whose: 'snug';
      readonly reason:
        | 'refused'
        | 'cannot-estimate'
        | 'out-of-vram'
        | 'out-of-host-ram'
        | 'no-new-step'
        | 'declined'
        | 'elsewhere'
        | 'not-found'
        | 'not-executable'
        | 'not-started';
    };

export interface AttemptRecord {
  readonly attempt: number;
  readonly argv: readonly string[];
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  readonly failure?: Failure | null;
  readonly predictedVramBytes: number | null;
  readonly predictedRamBytes: number | null;
  readonly peakVramBytes?: number | null;
  readonly peakRamBytes?: number | null;
  readonly resumedFrom: string | null;
  readonly outputDir: string | null;
}

export interface RunState {
  readonly state: 'starting' | 'running' | 'between-attempts' | 'ended';
  readonly verdict: string;
  readonly attempts: readonly AttemptRecord[];
  readonly ending?: Ending;
  readonly exitCode?: number;
}

/** What `run.json` begins with. */
export interface RecordedLaunch {
  readonly argv: readonly string[];
  readonly pid: number;
  /** Of a run that is gone on with: when it began, and its attempts as they stand in the file. */
  readonly before?: { readonly startedAt: string | undefined; readonly attempts: readonly object[] } | undefined;
}

/** Keeps `run.json` true after every step; a crash of snug leaves the last whole state. */
export function createRunRecord(ports: Ports, folder: RunFolder, launch: RecordedLaunch) {
  const startedAt = launch.before?.startedAt ?? ports.now().toISOString();
  const secrets = secretsIn(launch.argv, ports.environment);
  return (state: RunState): Diagnostic | undefined => {
    const attempts = state.attempts.map((attempt) => ({ ...attempt, argv: maskSecrets(attempt.argv) }));
    return folder.saveState({
      schema_version: 1,
      id: folder.id,
      started_at: startedAt,
      updated_at: ports.now().toISOString(),
      cwd: ports.cwd,
      pid: launch.pid,
      argv: maskSecrets(launch.argv),
      ...maskKnown(withEarlier(snakeCased({ ...state, attempts }) as SavedRun, launch), secrets),
    });
  };
}

interface SavedRun {
  readonly attempts: readonly object[];
}

const withEarlier = (saved: SavedRun, { before }: RecordedLaunch): SavedRun => ({
  ...saved,
  attempts: [...(before?.attempts ?? []), ...saved.attempts],
});
