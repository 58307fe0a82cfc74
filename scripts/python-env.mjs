#!/usr/bin/env node
/**
 * Makes .python-env/ ready: a virtual environment with what test/python-requirements.txt pins, made when missing, brought up to
 * date when the requirements change. SNUG_PYTHON_ENV=FOLDER uses that environment instead and leaves it as it is.
 *
 *   node scripts/python-env.mjs          prints the path of its python
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { withLock } from './lock.mjs';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const STAMP = 'snug-requirements.sha256';
const OLDEST = [3, 10];

/** Trouble that the person at the keyboard can end; `help` says how. */
export class PythonEnvError extends Error {
  constructor(message, help) {
    super(message);
    this.name = 'PythonEnvError';
    this.help = help;
  }
}

const pythonOf = (folder) =>
  process.platform === 'win32' ? join(folder, 'Scripts', 'python.exe') : join(folder, 'bin', 'python');

export const hashOf = (text) => createHash('sha256').update(text).digest('hex');

/**
 * What is to be done. The stamp is written after the last package, so an interrupted install has none (or the old one) and is
 * taken up again; a folder whose python does not start is made anew.
 */
export function decide({ pythonStarts, stamp, wanted }) {
  if (!pythonStarts) return 'create';
  return stamp === wanted ? 'ready' : 'install';
}

const starts = (python) => existsSync(python) && spawnSync(python, ['-c', ''], { stdio: 'ignore' }).status === 0;

const readStamp = (folder) => {
  try {
    return readFileSync(join(folder, STAMP), 'utf8').trim();
  } catch {
    return undefined;
  }
};

const lastLines = (text, count) => text.trim().split(/\r?\n/).slice(-count).join('\n');

const OTHER_ENV = 'or set SNUG_PYTHON_ENV to a virtual environment that has these packages';

/** The first `python3` or `python` on PATH that is new enough. */
function findPython() {
  const seen = [];
  for (const name of ['python3', 'python']) {
    const asked = spawnSync(name, ['-c', 'import sys; print(*sys.version_info[:2])'], { encoding: 'utf8' });
    if (asked.status !== 0) continue;
    const [major, minor] = asked.stdout.trim().split(' ').map(Number);
    if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return name;
    seen.push(`${name} is ${major}.${minor}`);
  }
  throw new PythonEnvError(
    seen.length > 0 ? `${seen.join(', ')}: the trainers need ${OLDEST.join('.')} or newer` : 'no python3 on PATH',
    `put Python ${OLDEST.join('.')} or newer first on PATH, ${OTHER_ENV}`,
  );
}

function createEnv(folder, say) {
  const base = findPython();
  say(`making ${folder} with ${base}`);
  const made = spawnSync(base, ['-m', 'venv', '--clear', folder], { encoding: 'utf8' });
  if (made.status === 0) return;
  rmSync(folder, { recursive: true, force: true });
  throw new PythonEnvError(
    `${base} -m venv failed: ${lastLines(`${made.stdout}\n${made.stderr}`, 3)}`,
    `install its venv module (Debian, Ubuntu: apt install python3-venv), ${OTHER_ENV}`,
  );
}

function install(python, requirements, say) {
  say('installing the pinned packages; PyTorch is large, the first time takes minutes');
  const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
  const done = spawnSync(python, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (done.status === 0) return;
  throw new PythonEnvError(
    `pip install failed (exit code ${done.status ?? done.signal}): ${lastLines(done.stderr || done.stdout, 5)}`,
    `run it yourself to see all of it: ${[python, ...args.filter((arg) => arg !== '--quiet')].join(' ')}\n` +
      `  (no GPU? PIP_EXTRA_INDEX_URL set to PyTorch's CPU index saves gigabytes), ${OTHER_ENV}`,
  );
}

/** Path of a python that has the pinned packages. Throws PythonEnvError. */
export async function ensurePythonEnv({
  folder = join(ROOT, '.python-env'),
  requirements = join(ROOT, 'test', 'python-requirements.txt'),
  given = process.env.SNUG_PYTHON_ENV,
  say = (text) => process.stderr.write(`python-env: ${text}\n`),
} = {}) {
  if (given) {
    const python = pythonOf(resolve(given));
    if (starts(python)) return python;
    throw new PythonEnvError(
      `SNUG_PYTHON_ENV=${given}: ${python} does not start`,
      'point it at the folder of a virtual environment, or unset it to have one made',
    );
  }
  const python = pythonOf(folder);
  const wanted = hashOf(readFileSync(requirements));
  const next = () => decide({ pythonStarts: starts(python), stamp: readStamp(folder), wanted });
  if (next() === 'ready') return python;
  await withLock(
    // Not inside the folder, which venv --clear empties.
    join(tmpdir(), `snug-python-env-${hashOf(resolve(folder)).slice(0, 12)}.lock`),
    () => {
      // Asked again inside the lock: the one we waited for has usually done the work.
      const todo = next();
      if (todo === 'ready') return;
      if (todo === 'create') createEnv(folder, say);
      install(python, requirements, say);
      writeFileSync(join(folder, STAMP), `${wanted}\n`);
      say('ready');
    },
    { onWait: () => say('another run is installing, waiting for it') },
  );
  return python;
}

if (process.argv[1] && import.meta.url === pathToFileURL(resolve(process.argv[1])).href) {
  try {
    process.stdout.write(`${await ensurePythonEnv()}\n`);
  } catch (error) {
    if (!(error instanceof PythonEnvError)) throw error;
    process.stderr.write(`python-env: ${error.message}\n  help: ${error.help}\n`);
    process.exitCode = 1;
  }
}
