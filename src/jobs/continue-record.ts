import { join } from 'node:path';
import type { Diagnostic, Ports } from '../core/index.ts';
import { maskSecrets } from '../report/index.ts';
import type { SpecChange } from '../spec/index.ts';
import type { LaunchTarget } from './launch-target.ts';
import type { NamedProcess } from './processes.ts';
import type { RunRequest } from './run.ts';
import type { RunFolder } from './run-folder.ts';

/** What a later `snug run --continue` needs of an attempt. */
export interface ContinueAttempt {
  readonly startedMs: number;
  readonly outputDir: string | undefined;
  /** From the launch as it came. */
  readonly changes: readonly SpecChange[];
}

/** `continue.json`: what goes on from a run folder, in the names of this program. For people there is `run.json`. */
export interface ContinueRecord {
  readonly schemaVersion: 1;
  readonly request: Omit<RunRequest, 'dryRun' | 'continued'>;
  readonly cwd: string;
  /** The command holds a secret, which is not kept. */
  readonly masked: boolean;
  readonly attempts: readonly ContinueAttempt[];
  readonly processes: {
    readonly snug: NamedProcess | undefined;
    readonly watcher: NamedProcess | undefined;
    readonly trainer: NamedProcess | undefined;
  };
}

const CONTINUE_FILE = 'continue.json';

/** The target as it may be kept. */
function keepable(target: LaunchTarget): { readonly target: LaunchTarget; readonly masked: boolean } {
  if (target.kind === 'config') return { target, masked: false };
  const argv = maskSecrets(target.argv);
  return { target: { kind: 'command', argv }, masked: argv.some((token, index) => token !== target.argv[index]) };
}

export function saveContinueRecord(
  folder: RunFolder,
  record: Omit<ContinueRecord, 'schemaVersion' | 'masked'>,
): Diagnostic | undefined {
  const { dryRun: _, continued: __, ...request } = record.request as RunRequest;
  const { target, masked } = keepable(request.target);
  const kept: ContinueRecord = { schemaVersion: 1, ...record, request: { ...request, target }, masked };
  return folder.save(join(folder.path, CONTINUE_FILE), kept);
}

/** Undefined: there is none, or it is not whole. */
export function readContinueRecord(ports: Ports, runFolder: string): ContinueRecord | undefined {
  const text = ports.files.readText(join(runFolder, CONTINUE_FILE));
  if (!text.ok) return undefined;
  try {
    const record = JSON.parse(text.value) as ContinueRecord;
    return record.schemaVersion === 1 && Array.isArray(record.attempts) ? record : undefined;
  } catch {
    return undefined;
  }
}
