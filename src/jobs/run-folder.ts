import { basename, join } from 'node:path';
import { type Diagnostic, error, fail, ok, type Ports, type Result } from '../core/index.ts';

/** Where a run keeps what it did: `.snug/runs/<utc time>-<name>/`. */
export interface RunFolder {
  readonly id: string;
  readonly path: string;
  /** Replaces `run.json` in one step. */
  readonly saveState: (state: object) => Diagnostic | undefined;
  /** Makes `attempts/<number>/` and returns its path. */
  readonly openAttempt: (number: number) => Result<string>;
  /** Writes a JSON or text file of an attempt in one step. */
  readonly save: (path: string, content: object | string) => Diagnostic | undefined;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  // What Node says of a folder below one that cannot be made.
  ENOENT: 'the folder above it cannot be made, as on a read-only file system',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
};

const cannotWrite = (path: string, code: string): Diagnostic =>
  error('run-folder', `cannot write ${path}: ${REASONS[code] ?? code}`, {
    help:
      code === 'ENOSPC' || code === 'EDQUOT'
        ? 'make room on that disk: the run goes on, but what happens to it is not written down'
        : 'start snug in a folder that can be written: the run folder .snug/runs is made there',
  });

/** `train.py`, `sft.yaml` → `train`, `sft`: the readable half of a run's name. */
export function runName(argv: readonly string[], configPath: string | undefined): string {
  const telling =
    configPath ?? argv.find((token) => /\.(py|ya?ml|json|sh|sbatch|slurm)$/.test(token)) ?? argv[0] ?? 'run';
  return (
    basename(telling)
      .replace(/\.[a-z]+$/i, '')
      .replace(/[^A-Za-z0-9_-]+/g, '-')
      .slice(0, 40) || 'run'
  );
}

const asText = (content: object | string): string =>
  typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`;

/** A fresh run folder; two runs started in the same second get different names. */
export function createRunFolder(ports: Ports, name: string): Result<RunFolder> {
  const stamp = ports.now().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
  const root = join(ports.cwd, '.snug', 'runs');
  let id = `${stamp}-${name}`;
  for (let copy = 2; ports.files.info(join(root, id)); copy++) id = `${stamp}-${name}-${copy}`;
  return openRunFolder(ports, join(root, id));
}

/** A run folder by its path, made where it is not there. */
export function openRunFolder(ports: Ports, path: string): Result<RunFolder> {
  const made = ports.store.makeFolder(join(path, 'attempts'));
  if (!made.ok) return fail(cannotWrite(path, made.code));
  const save = (file: string, content: object | string): Diagnostic | undefined => {
    const written = ports.store.writeAtomic(file, asText(content));
    return written.ok ? undefined : cannotWrite(file, written.code);
  };
  return ok({
    id: basename(path),
    path,
    save,
    saveState: (state) => save(join(path, 'run.json'), state),
    openAttempt: (number) => {
      const folder = join(path, 'attempts', String(number));
      const opened = ports.store.makeFolder(folder);
      return opened.ok ? ok(folder) : fail(cannotWrite(folder, opened.code));
    },
  });
}
