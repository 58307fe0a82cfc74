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
});
