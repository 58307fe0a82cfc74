import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withLock } from '../../scripts/lock.mjs';
import { hashOf } from '../../scripts/python-env.mjs';
import { processesWithVariable, type SeenProcess } from './processes.ts';
import { type RunRecord, readOnlyRun } from './run-record.ts';
import { type Ended, type Running, startProcess } from './running.ts';

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');
const SNUG = join(ROOT, 'bin', 'snug.js');

/** A card for the fake nvidia-smi, sizes in MiB. */
export interface FakeGpu {
  readonly name: string;
  readonly total: number;
  readonly used?: number;
  readonly computeCap?: string;
}

export interface SandboxOptions {
  /** What nvidia-smi reports; none: a driver that cannot be reached. */
  readonly gpus?: readonly FakeGpu[];
  /** The trainers' Python: its folder comes before the system's on PATH. */
  readonly python?: string;
}

/** A working directory of its own, a clean environment, a fake nvidia-smi, and the built command line to run in it. */
export interface Sandbox {
  readonly folder: string;
  readonly write: (name: string, text: string) => string;
  readonly read: (name: string) => string;
  readonly exists: (name: string) => boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly start: (args: readonly string[], env?: Readonly<Record<string, string>>) => Running;
  readonly run: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>;
  /** Any program, in the same place and environment. */
  readonly startProgram: (argv: readonly string[], env?: Readonly<Record<string, string>>) => Running;
  /** The only run folder, as `run.json` and its attempts. */
  readonly onlyRun: () => RunRecord;
  /** Processes of this sandbox that run still (Linux). */
  readonly leftProcesses: () => SeenProcess[];
  readonly remove: () => void;
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Makes a sandbox; `remove` ends what is left in it and deletes it. */
export function makeSandbox({ gpus, python }: SandboxOptions = {}): Sandbox {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'snug-e2e-')));
  const [folder, home, programs] = ['work', 'home', 'programs'].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [folder, home, programs]) mkdirSync(path);

  const driver = gpus
    ? { gpus }
    : { fails: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." };
  writeFileSync(join(programs, 'nvidia-smi.json'), JSON.stringify(driver));
  const fake = [
    process.execPath,
    join(ROOT, 'test', 'support', 'fake-nvidia-smi.mjs'),
    join(programs, 'nvidia-smi.json'),
  ];
  writeFileSync(join(programs, 'nvidia-smi'), `#!/bin/sh\nexec ${fake.map(shellQuoted).join(' ')} "$@"\n`, {
    mode: 0o755,
  });

  const marker = `SNUG_TEST_SANDBOX=${randomUUID()}`;
  const [markerName, markerValue] = marker.split('=') as [string, string];
  const env = {
    PATH: [programs, ...(python ? [dirname(python)] : []), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
    HOME: home,
    NO_COLOR: '1',
    LANG: 'C.UTF-8',
    HF_HUB_OFFLINE: '1',
    HF_DATASETS_OFFLINE: '1',
    TOKENIZERS_PARALLELISM: 'false',
    OMP_NUM_THREADS: '1',
    [markerName]: markerValue,
  };
  const startProgram: Sandbox['startProgram'] = (argv, extra = {}) => startProcess(argv, folder, { ...env, ...extra });
  const start: Sandbox['start'] = (args, extra) => startProgram([process.execPath, SNUG, ...args], extra);
  return {
    folder,
    env,
    write: (name, text) => {
      const path = join(folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      return path;
    },
    read: (name) => readFileSync(join(folder, name), 'utf8'),
    exists: (name) => existsSync(join(folder, name)),
    start,
    run: (args, extra) => start(args, extra).ended,
    startProgram,
    onlyRun: () => readOnlyRun(folder),
    leftProcesses: () => processesWithVariable(marker),
    remove: () => {
      if (process.platform === 'linux') {
        for (const { pid } of processesWithVariable(marker)) {
          try {
            process.kill(pid, 'SIGKILL');
          } catch {
            // It ended between being listed and being ended.
          }
        }
      }
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** For a test that starts a trainer: PyTorch alone takes ten seconds to load on a busy machine. */
export const TRAINER_TIMEOUT_MS = 240_000;
/** For a hook that may have to make the Python environment. */
export const SETUP_TIMEOUT_MS = 1_200_000;

const modified = (path: string): number => (existsSync(path) ? statSync(path).mtimeMs : 0);

/** Whether dist/ is there and no source is newer: a test of an old build proves nothing. */
function isBuilt(): boolean {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join(ROOT, 'src', name),
  );
  const newest = Math.max(...[...sources, join(ROOT, 'package.json'), join(ROOT, 'vite.config.ts')].map(modified));
  return modified(join(ROOT, 'dist', 'snug.js')) >= newest;
}

/** Brings dist/ up to date; one test file at a time. */
export async function ensureBuilt(): Promise<void> {
  await withLock(join(tmpdir(), `snug-test-build-${hashOf(ROOT).slice(0, 12)}.lock`), async () => {
    if (isBuilt()) return;
    const built = await startProcess(['npm', 'run', 'build'], ROOT, process.env as Record<string, string>).ended;
    if (built.exitCode !== 0) throw new Error(`npm run build failed:\n${built.stdout}\n${built.stderr}`);
  });
}
