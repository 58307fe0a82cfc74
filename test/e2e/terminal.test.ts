import { createRequire } from 'node:module';
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

const TERMINAL = join(ROOT, 'test', 'support', 'terminal.py');
const SNUG = [process.execPath, join(ROOT, 'bin', 'snug.js')];

/** Counts the signals it hears, and ends with 5 when it is typed a line. */
const LISTENER = `
import signal, sys, threading
heard = []
def hear(number, frame):
    heard.append(signal.Signals(number).name)
    print("heard", *heard, flush=True)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), hear)
print("trainer is there", flush=True)
line = sys.stdin.readline().strip()
print("was told", line, flush=True)
sys.exit(5)
`;

/** Says what it finds at its three streams, how wide that is, and dies of what it is told to. */
const LOOKER = `
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print("terminals", *[os.isatty(number) for number in (0, 1, 2)], "width", os.get_terminal_size().columns, file=sys.stderr, flush=True)
print("ask: ", end="", flush=True)
if input() == "die":
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr)
    sys.exit(1)
sys.exit(6)
`;

/** Whether the optional package has a binary for this machine. */
const hasPty = (() => {
  try {
    createRequire(join(ROOT, 'dist', 'snug.js'))('@lydell/node-pty');
    return true;
  } catch {
    return false;
  }
})();

interface AtTerminal {
  readonly screen: string;
  readonly noted: readonly (readonly string[])[];
  readonly ended: number;
}

describe.skipIf(process.platform !== 'linux')('at a terminal', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
    sandbox.write('listener.py', LISTENER);
    sandbox.write('looker.py', LOOKER);
  });
  afterEach(() => {
    const left = sandbox.leftProcesses();
    sandbox.remove();
    expect(left).toEqual([]);
  });

  async function at(steps: readonly (readonly string[])[], ...command: readonly string[]): Promise<AtTerminal> {
    const { stdout, stderr } = await sandbox.startProgram(
      ['python3', TERMINAL, JSON.stringify(steps), ...SNUG, ...command],
      { TERM: 'dumb', COLUMNS: '' },
    ).ended;
    expect(stderr).toBe('');
    return JSON.parse(stdout) as AtTerminal;
  }

  const listener = (...signals: string[]): string[] => ['run', '--', 'python3', 'listener.py', ...signals];

  it('a question of the trainer gets its answer', async () => {
    const run = await at([['see', 'trainer is there'], ['type', 'yes\n'], ['end']], ...listener());
    expect(run.screen).toContain('was told yes');
    expect(run.ended).toBe(5);
  });

  it('Ctrl-Z gives the shell its prompt back, with all of the run suspended, and fg goes on', async () => {
    const run = await at(
      [['see', 'trainer is there'], ['type', '\u001a'], ['stopped'], ['go'], ['type', 'again\n'], ['end']],
      ...listener(),
    );
    // snug and the trainer; the watcher has a session of its own.
    expect(run.noted).toEqual([['T', 'T']]);
    expect(run.screen).toContain('was told again');
    expect(run.ended).toBe(5);
  });

  it('twice in a row', async () => {
    const once = [['type', '\u001a'], ['stopped'], ['go']];
    const run = await at([['see', 'trainer is there'], ...once, ...once, ['type', 'x\n'], ['end']], ...listener());
    expect(run.noted).toEqual([
      ['T', 'T'],
      ['T', 'T'],
    ]);
    expect(run.ended).toBe(5);
  });

  it.each([
    ['Ctrl-C', '\u0003', 'SIGINT'],
    ['Ctrl-\\', '\u001c', 'SIGQUIT'],
  ])('%s reaches the trainer once', async (_, key, signal) => {
    const run = await at(
      [['see', 'trainer is there'], ['type', key], ['see', `heard ${signal}`], ['type', 'bye\n'], ['end']],
      ...listener(signal),
    );
    expect(run.screen).toContain('was told bye');
    expect(run.screen).not.toContain(`heard ${signal} ${signal}`);
    expect(run.ended).toBe(5);
    expect(sandbox.onlyRun().attempts).toHaveLength(1);
  });

  describe.skipIf(!hasPty)('with --pty', () => {
    const looker = ['run', '--pty', '--retries', '0', '--', 'python3', 'looker.py'];

    it('the trainer has a terminal of its own, as wide as ours, and answers come through', async () => {
      const run = await at([['see', 'ask: '], ['type', 'go on\r'], ['end']], ...looker);
      expect(run.screen).toContain('terminals True True True width 80');
      expect(run.ended).toBe(6);
      expect(sandbox.onlyRun().attempts[0]!.log).toContain('out| terminals True True True');
    });

    it('an OOM is seen there as well', async () => {
      const run = await at([['see', 'ask: '], ['type', 'die\r'], ['end']], ...looker);
      expect(sandbox.onlyRun().attempts[0]!.outcome).toMatchObject({ failure: { kind: 'vram_capacity' } });
      expect(run.ended).toBe(13);
    });

    it('Ctrl-Z and Ctrl-C do what they do without it', async () => {
      const run = await at(
        [
          ['see', 'ask: '],
          ['type', '\u001a'],
          ['stopped'],
          ['go'],
          ['type', '\u0003'],
          ['see', 'interrupted'],
          ['type', 'go on\r'],
          ['end'],
        ],
        ...looker,
      );
      expect(run.noted).toEqual([['T']]);
      expect(run.ended).toBe(6);
      expect(run.screen.match(/interrupted/g)).toHaveLength(1);
    });
  });

  it('--pty without a terminal, or without its package, says what to do', async () => {
    const none = await sandbox.run(['run', '--pty', '--', 'true']);
    expect(none.exitCode).toBe(2);
    expect(none.stderr).toMatch(/^error\[no-terminal\]/);
    if (hasPty) return;
    const run = await at([['end']], 'run', '--pty', '--', 'true');
    expect(run.ended).toBe(2);
    expect(run.screen).toMatch(/error\[no-pty\][\s\S]*npm install @lydell\/node-pty/);
  });
});
