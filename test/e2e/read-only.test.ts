import { chmodSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const SNUG = [process.execPath, join(ROOT, 'bin', 'snug.js')];
/** To root every folder can be written: a user without rights starts the rest of the line. */
const AS_NOBODY =
  'import os, sys\nif os.getuid() == 0:\n  os.setgroups([]); os.setgid(65534); os.setuid(65534)\nos.execvp(sys.argv[1], sys.argv[1:])';

/** Whether everybody may read this program's files; a checkout in somebody's closed home can only be run by them. */
const readableByAll = (path: string): boolean =>
  (statSync(path).mode & 0o005) === 0o005 && (path === '/' || readableByAll(dirname(path)));
const canTry = process.platform === 'linux' && (process.getuid?.() !== 0 || readableByAll(ROOT));

describe.skipIf(!canTry)('a folder that cannot be written', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
    chmodSync(dirname(sandbox.folder), 0o755);
  });
  afterEach(() => {
    chmodSync(sandbox.folder, 0o755);
    const left = sandbox.leftProcesses();
    sandbox.remove();
    expect(left).toEqual([]);
  });

  const run = (...command: string[]) =>
    sandbox.startProgram(['python3', '-c', AS_NOBODY, ...SNUG, 'run', '--', ...command]).ended;

  it('starts nothing whose end could not be written down, and says where it can', async () => {
    chmodSync(sandbox.folder, 0o555);
    const { exitCode, stdout, stderr } = await run('echo', 'started');
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
    expect(stderr).toMatch(/^error\[run-folder\]: cannot write[\s\S]*permission is\s+denied/m);
    expect(stderr).toMatch(/help: start snug in a folder that can be written/);
  });

  it('is no end of a run that trains well when its run folder becomes one', async () => {
    chmodSync(sandbox.folder, 0o777);
    const script = 'echo begun; chmod -R a-w .snug; seq 1 2000; echo after >&2; exit 5';
    const { exitCode, stdout, stderr } = await run('sh', '-c', script);
    expect(exitCode).toBe(5);
    expect(stdout).toBe(`begun\n${Array.from({ length: 2000 }, (_, at) => `${at + 1}\n`).join('')}`);
    expect(stderr.match(/warning\[run-folder\]/g)).toHaveLength(1);
  });
});
