import { readFileSync } from 'node:fs';
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

const SNUG = join(ROOT, 'bin', 'snug.js');
const PATIENT = join(ROOT, 'test', 'fixtures', 'e2e', 'patient.py');

/** Opens a terminal of its own for a command, reads until the command says `waiting`, and closes it. */
const CLOSES_TERMINAL = `
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    if sys.argv[1] == "nohup":
        # As a shell does it for nohup at a terminal.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ["_"] = "/usr/bin/nohup"
    os.execvp(sys.argv[2], sys.argv[2:])
seen = b""
while b"waiting" not in seen:
    seen += os.read(terminal, 4096)
os.close(terminal)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
`;

/** Says a line for every 0.01 s, 300 of them, after it has said waiting. */
const TALKER = `
import signal, sys, time
print("waiting", flush=True)
for number in range(300):
    print(f"line {number}", flush=True)
    print(f"note {number}", file=sys.stderr, flush=True)
    time.sleep(0.01)
`;

describe.skipIf(process.platform !== 'linux')('a run that nobody looks after', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
    sandbox.write('talker.py', TALKER);
    sandbox.write('terminal.py', CLOSES_TERMINAL);
  });
  afterEach(() => sandbox.remove());

  const expectWholeLog = (): void => {
    const lines = sandbox.onlyRun().attempts[0]!.log.split('\n');
    const of = (lead: string): string[] => lines.filter((line) => line.startsWith(lead)).map((line) => line.slice(5));
    expect(of('out| ')).toEqual(['waiting', ...Array.from({ length: 300 }, (_, number) => `line ${number}`)]);
    expect(of('err| ')).toEqual(Array.from({ length: 300 }, (_, number) => `note ${number}`));
  };

  it('goes on, and keeps its log, when the program that reads it has ended', async () => {
    const piped = `"$0" "$1" run -- python3 talker.py 2>errors | head -n 1`;
    const ended = await sandbox.startProgram(['sh', '-c', piped, process.execPath, SNUG]).ended;
    expect(ended.stdout).toBe('waiting\n');
    await expect.poll(() => sandbox.leftProcesses(), { timeout: 60_000, interval: 50 }).toEqual([]);
    expect(sandbox.onlyRun().state).toMatchObject({ state: 'ended', exit_code: 0 });
    expectWholeLog();
  });

  it('goes on when its terminal is closed and it was started with nohup', async () => {
    const run = sandbox.startProgram([
      'python3',
      'terminal.py',
      'nohup',
      process.execPath,
      SNUG,
      'run',
      '--',
      'python3',
      'talker.py',
    ]);
    expect((await run.ended).stdout).toBe('0\n');
    expect(sandbox.leftProcesses()).toEqual([]);
    expectWholeLog();
  });

  it('ends, and lets the trainer save, when its terminal is closed', async () => {
    const run = sandbox.startProgram([
      'python3',
      'terminal.py',
      'heard',
      process.execPath,
      SNUG,
      'run',
      '--',
      'python3',
      PATIENT,
    ]);
    await run.ended;
    expect(sandbox.leftProcesses()).toEqual([]);
    expect(sandbox.onlyRun().state).toMatchObject({ state: 'ended' });
  });

  it('goes on when its folder can no longer be written, and says so once', async () => {
    const program = `echo begun; until rm -rf .snug; touch .snug; test -f .snug; do :; done; ${process.execPath} -e 'setTimeout(() => console.log("done"), 2500)'; exit 5`;
    const ended = await sandbox.run(['run', '--', 'sh', '-c', program]);
    expect(ended).toMatchObject({ exitCode: 5, stdout: 'begun\ndone\n' });
    expect(ended.stderr.match(/cannot write/g)).toHaveLength(1);
    expect(readFileSync(join(sandbox.folder, '.snug'), 'utf8')).toBe('');
    expect(sandbox.leftProcesses()).toEqual([]);
  });
});
