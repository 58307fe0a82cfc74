import { join } from 'node:path';
import type { Diagnostic } from '../core/index.ts';
import type { Evidence, Failure } from '../diagnosis/index.ts';
import type { FittedLaunch } from '../dialects/index.ts';
import { changeJson, maskKnown, maskSecrets, snakeCased } from '../report/index.ts';
import type { SpecChange } from '../spec/index.ts';
import type { RunFolder } from './run-folder.ts';

/** How an attempt is started: nothing of the shell is left in it. */
export interface AttemptLaunch {
  readonly argv: readonly string[];
  /** Beside the environment snug itself was given. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Writes what is started, and why it looks like that. Yields what could not be written. */
export function saveLaunch(
  folder: RunFolder,
  path: string,
  launch: AttemptLaunch,
  { files }: FittedLaunch,
  changes: readonly SpecChange[],
): readonly (Diagnostic | undefined)[] {
  const { argv, env, cwd } = launch;
  return [
    ...files.map((file) => folder.save(file.copy, file.text)),
    folder.save(join(path, 'command.json'), { argv: maskSecrets(argv), env: maskSecrets(env), cwd }),
    folder.save(join(path, 'changes.json'), changes.map(changeJson)),
  ];
}

/** Writes how it ended. */
export function saveOutcome(
  folder: RunFolder,
  path: string,
  outcome: { readonly evidence: Evidence; readonly failure: Failure | undefined; readonly durationMs: number },
  secrets: readonly string[],
): Diagnostic | undefined {
  const { evidence, failure, durationMs } = outcome;
  const { exitCode = null, signal = null } = evidence;
  const content = snakeCased({ exitCode, signal, durationMs, failure: failure ?? null, evidence }) as object;
  return folder.save(join(path, 'outcome.json'), maskKnown(content, secrets));
}
