import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One `attempts/<n>/` folder. */
export interface AttemptRecord {
  readonly folder: string;
  readonly command: unknown;
  readonly changes: unknown;
  readonly outcome: unknown;
  readonly log: string;
}

/** One `.snug/runs/<id>/` folder. */
export interface RunRecord {
  readonly folder: string;
  readonly state: Record<string, unknown>;
  readonly attempts: readonly AttemptRecord[];
}

const json = (path: string): unknown => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined);

/** The only run folder of a working directory. */
export function readOnlyRun(cwd: string): RunRecord {
  const runs = join(cwd, '.snug', 'runs');
  const names = existsSync(runs) ? readdirSync(runs) : [];
  if (names.length !== 1) throw new Error(`expected one run folder in ${runs}, found ${names.length}`);
  const folder = join(runs, names[0]!);
  const attempts = readdirSync(join(folder, 'attempts'))
    .sort((a, b) => Number(a) - Number(b))
    .map((name): AttemptRecord => {
      const attempt = join(folder, 'attempts', name);
      const log = join(attempt, 'output.log');
      return {
        folder: attempt,
        command: json(join(attempt, 'command.json')),
        changes: json(join(attempt, 'changes.json')),
        outcome: json(join(attempt, 'outcome.json')),
        log: existsSync(log) ? readFileSync(log, 'utf8') : '',
      };
    });
  return { folder, state: json(join(folder, 'run.json')) as Record<string, unknown>, attempts };
}
