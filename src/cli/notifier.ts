import { type ChildProcess, spawn } from 'node:child_process';
import { error, fail, ok, type Result } from '../core/index.ts';
import { splitCommand } from '../dialects/index.ts';
import type { RunEvent } from '../report/index.ts';

/** Tells somebody outside what happens to a run: `--on-event`. */
export interface Notifier {
  readonly tell: (event: object) => void;
  /** Waits for those that are still telling; resolves with what went wrong, one clause each. */
  readonly finish: () => Promise<readonly string[]>;
}

/** What is worth a message to a phone. */
const WORTH_TELLING = new Set<RunEvent['kind']>([
  'attempt-ended',
  'replanned',
  'starting-over',
  'continuing',
  'stalled',
  'memory-grows',
  'slowed-down',
  'same-again',
  'made-no-step',
  'gpu-memory-stuck',
  'given-up',
  'host-ram-out',
  'finished',
]);

export const isWorthTelling = ({ kind }: RunEvent): boolean => WORTH_TELLING.has(kind);

/** A mail server may take its time, but not the end of the run with it. */
const FINISH_MS = 20_000;

/** A notifier that starts `command`, split into words as a shell would and without one, for every event. */
export function createNotifier(command: string): Result<Notifier> {
  const words = splitCommand(command, '--on-event');
  if (!words.ok) return words;
  const [program, ...args] = words.value;
  if (program === undefined) {
    return fail(error('empty-command', '--on-event names no command', { help: "--on-event './tell-me.sh'" }));
  }
  const open = new Map<ChildProcess, Promise<void>>();
  const problems = new Set<string>();
  const start = (event: object): void => {
    // A group of its own: Ctrl-C is for the trainer, and the message about it shall still go out.
    const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    const ended = new Promise<void>((resolve) => {
      child.once('error', (failure: NodeJS.ErrnoException) => {
        problems.add(`--on-event could not start ${program}: ${failure.code ?? failure.message}`);
        resolve();
      });
      child.once('exit', (code, signal) => {
        if (code !== 0) problems.add(`the --on-event command ended with ${signal ?? `exit code ${code}`}`);
        resolve();
      });
    }).finally(() => open.delete(child));
    open.set(child, ended);
    // It may end without reading.
    child.stdin.on('error', () => {});
    child.stdin.end(`${JSON.stringify(event)}\n`);
  };
  return ok({
    tell: start,
    async finish() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<'late'>((resolve) => {
        timer = setTimeout(() => resolve('late'), FINISH_MS);
      });
      if ((await Promise.race([Promise.all(open.values()), late])) === 'late') {
        for (const child of open.keys()) child.kill('SIGKILL');
        problems.add(`the --on-event command did not end within ${FINISH_MS / 1000} s`);
      }
      clearTimeout(timer);
      return [...problems];
    },
  });
}
