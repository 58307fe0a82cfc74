import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decide, hashOf } from '../../scripts/python-env.mjs';

const MODULE = resolve(fileURLToPath(import.meta.url), '../../../scripts/python-env.mjs');

/**
 * A `python3` that does what the test says: `-m venv` copies itself into the folder, `-m pip` counts its calls in pip.log.
 * A folder named `bin` is what makes it a virtual environment's own python.
 */
const fakePython = ({
  version = '3 12',
  venv = 0,
  pip = 0,
}: {
  version?: string;
  venv?: number;
  pip?: number;
}) => `#!/bin/sh
case "$1 $2" in
  "-c import"*) echo ${version} ;;
  "-m venv") [ ${venv} = 0 ] || { echo "ensurepip is not available" >&2; exit ${venv}; }
    mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && exit 0 ;;
  "-m pip") echo pip >> "$PIP_LOG"; sleep 0.3; [ ${pip} = 0 ] || echo "ERROR: no matching distribution" >&2; exit ${pip} ;;
esac
exit 0
`;

describe.skipIf(process.platform === 'win32')('scripts/python-env.mjs', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'snug-python-env-test-'));
    mkdirSync(join(folder, 'path'));
    writeFileSync(join(folder, 'requirements.txt'), 'torch==2.13.0\n');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const putPython = (options: Parameters<typeof fakePython>[0]) => {
    for (const name of ['python3', 'python']) {
      writeFileSync(join(folder, 'path', name), fakePython(options));
      chmodSync(join(folder, 'path', name), 0o755);
    }
  };
  const start = () => {
    const options = JSON.stringify({ folder: join(folder, 'env'), requirements: join(folder, 'requirements.txt') });
    const program = `import { ensurePythonEnv } from ${JSON.stringify(MODULE)};
      await ensurePythonEnv({ ...${options}, given: process.env.GIVEN }).then(
        (python) => console.log(python),
        (error) => { console.log(error.name + ': ' + error.message + ' | ' + error.help); });`;
    return spawn(process.execPath, ['--input-type=module', '-e', program], {
      env: {
        PATH: [join(folder, 'path'), '/usr/bin', '/bin'].join(delimiter),
        PIP_LOG: join(folder, 'pip.log'),
        TMPDIR: folder,
        ...(given ? { GIVEN: given } : {}),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  };
  let given: string | undefined;
  const outputOf = async (child: ChildProcess) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await new Promise((done) => child.on('close', done));
    return text.trim();
  };
  const run = (use?: string) => {
    given = use;
    return outputOf(start());
  };
  const pipCalls = () => {
    try {
      return readFileSync(join(folder, 'pip.log'), 'utf8').trim().split('\n').length;
    } catch {
      return 0;
    }
  };
  const stamp = () => join(folder, 'env', 'snug-requirements.sha256');

  it('makes, installs or leaves alone by what is there', () => {
    const wanted = hashOf('torch==2.13.0\n');
    expect(decide({ pythonStarts: false, stamp: undefined, wanted })).toBe('create');
    // The stamp survived, the interpreter it was made with did not.
    expect(decide({ pythonStarts: false, stamp: wanted, wanted })).toBe('create');
    expect(decide({ pythonStarts: true, stamp: undefined, wanted })).toBe('install');
    expect(decide({ pythonStarts: true, stamp: hashOf('torch==2.12.0\n'), wanted })).toBe('install');
    expect(decide({ pythonStarts: true, stamp: wanted, wanted })).toBe('ready');
  });

  it('installs once, again when the requirements change, and again after an interrupted install', async () => {
    putPython({});
    const python = join(folder, 'env', 'bin', 'python');
    expect(await run()).toBe(python);
    expect(await run()).toBe(python);
    expect(pipCalls()).toBe(1);
    writeFileSync(join(folder, 'requirements.txt'), 'torch==2.14.0\n');
    await run();
    expect(pipCalls()).toBe(2);
    rmSync(stamp());
    await run();
    expect(pipCalls()).toBe(3);
    expect(readFileSync(stamp(), 'utf8')).toBe(`${hashOf('torch==2.14.0\n')}\n`);
  });

  it('two runs at the same time install once', async () => {
    putPython({});
    given = undefined;
    const both = await Promise.all([outputOf(start()), outputOf(start())]);
    expect(new Set(both)).toEqual(new Set([join(folder, 'env', 'bin', 'python')]));
    expect(pipCalls()).toBe(1);
  });

  it('says the way out where it cannot go on', async () => {
    putPython({ version: '3 9' });
    expect(await run()).toMatch(
      /^PythonEnvError: python3 is 3\.9, .*need 3\.10 or newer \| put Python 3\.10 or newer first/,
    );
    putPython({ venv: 1 });
    expect(await run()).toMatch(/-m venv failed: ensurepip is not available \| .*apt install python3-venv/);
    putPython({ pip: 1 });
    expect(await run()).toMatch(
      /pip install failed \(exit code 1\): ERROR: no matching distribution \| run it yourself/,
    );
    expect(() => readFileSync(stamp())).toThrow();
    expect(await run('/nowhere')).toMatch(/SNUG_PYTHON_ENV=\/nowhere: .* does not start \| point it at the folder/);
  });

  it('uses a given environment as it is', async () => {
    putPython({});
    mkdirSync(join(folder, 'mine', 'bin'), { recursive: true });
    writeFileSync(join(folder, 'mine', 'bin', 'python'), fakePython({}), { mode: 0o755 });
    expect(await run(join(folder, 'mine'))).toBe(join(folder, 'mine', 'bin', 'python'));
    expect(pipCalls()).toBe(0);
  });
});
