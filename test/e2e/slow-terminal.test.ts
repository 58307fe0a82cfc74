import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const BYTES = 1_500_000;

/** Opens a terminal of its own for a command, reads nothing until the file `written` is there, then everything. */
const READS_LATE = `
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
until = time.time() + 60
while time.time() < until and not os.path.exists("written"):
    time.sleep(0.02)
early = os.path.exists("written")
got = b""
try:
    while True:
        piece = os.read(terminal, 65536)
        if not piece:
            break
        got += piece
except OSError:
    pass
_, status = os.waitpid(pid, 0)
print(early, got.count(b"0123456\\r\\n"), got.strip().split(b"\\r\\n")[-1].decode(), os.waitstatus_to_exitcode(status))
`;

describe.skipIf(process.platform !== 'linux')('a terminal that is stopped', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
    sandbox.write('terminal.py', READS_LATE);
  });
  afterEach(() => sandbox.remove());

  it('does not stop the trainer, and shows everything once it goes on', async () => {
    const trainer = `yes 0123456 | head -c ${BYTES}; touch written; exit 5`;
    const snug = [process.execPath, join(ROOT, 'bin', 'snug.js'), 'run', '-q', '--', 'sh', '-c', trainer];
    const { stdout, exitCode } = await sandbox.startProgram(['python3', 'terminal.py', ...snug]).ended;
    expect(exitCode).toBe(0);
    expect(stdout.trim()).toBe(`True ${BYTES / 8} snug: exit code 5, the trainer's own 5`);
  });
});
