import { type ChildProcess, type SendHandle, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { ProcessStat } from '../proc.ts';
import { readStat } from '../proc.ts';
import type { Child } from '../start-child.ts';
import type { WatcherMessage } from './messages.ts';

/** How snug speaks to its watcher: a small process of its own that ends the attempt should snug be gone. */
export interface Watcher {
  readonly pid: number | undefined;
  /** Resolves once it watches; also where it could not be started: a run without a watcher is better than none. */
  readonly ready: Promise<void>;
  /** Before the trainer starts. Returns the mark for its environment. */
  readonly expect: (attempt: ExpectedAttempt) => string;
  readonly follow: (child: Child) => void;
  /** Members of the tree as of now; only new ones are passed on. */
  readonly know: (members: readonly ProcessStat[]) => void;
  /** The attempt is over and nothing of it is left. */
  readonly release: () => void;
  /** Ends the watcher; resolves when it is gone. */
  readonly dismiss: () => Promise<void>;
}

export interface ExpectedAttempt {
  readonly graceMs: number;
  readonly logPath: string;
  /** Where the trainer saves; a kill waits while files grow there. */
  readonly outputDir: string | undefined;
  readonly reportPath: string;
}

/** A stuck watcher must not keep a run from starting or ending. */
const PATIENCE_MS = 5_000;
/** It reads a few files and sleeps. */
const SMALL_HEAP = ['--max-old-space-size=24', '--max-semi-space-size=1', '--v8-pool-size=1'];

/** Starts the watcher `program` (a script for this Node). It leads a session of its own, so that no signal of a terminal reaches it. */
export function startWatcher(program: string): Watcher {
  const watcher: ChildProcess = spawn(process.execPath, [...SMALL_HEAP, program], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Where snug was started may be removed or unmounted under it.
    cwd: '/',
  });
  const gone = new Promise<void>((resolve) => {
    watcher.once('exit', () => resolve());
    watcher.once('error', () => resolve());
  });
  const hello = new Promise<void>((resolve) => watcher.once('message', () => resolve()));
  const ready = within(Promise.race([hello, gone]), PATIENCE_MS).then(() => {
    watcher.unref();
    watcher.channel?.unref();
  });
  const known = new Set<string>();
  const send = (message: WatcherMessage, handle?: SendHandle): void => {
    if (!watcher.connected) return;
    // Ended in the meantime: the run goes on without it.
    watcher.send(message, handle, {}, () => {});
  };
  return {
    pid: watcher.pid,
    ready,
    expect(attempt) {
      const mark = randomUUID();
      known.clear();
      send({ kind: 'attempt', mark, ...attempt });
      return mark;
    },
    follow(child) {
      const stat = child.pid === undefined ? undefined : readStat(child.pid);
      if (!stat) return;
      const { pid, startTicks } = stat;
      send({ kind: 'leader', leader: { pid, startTicks }, ownSession: child.ownSession });
      for (const name of ['stdout', 'stderr'] as const) {
        const { end } = child[name];
        // A pipe cannot be sent, but opened once more. Of a socket the bare handle is sent: a whole net.Socket would begin to read.
        if ('fd' in end) send({ kind: 'stream', name, path: `/proc/${process.pid}/fd/${end.fd}` });
        else if (end.handle) send({ kind: 'stream', name }, end.handle as SendHandle);
      }
    },
    know(members) {
      const fresh = members.filter(({ pid, startTicks }) => !known.has(`${pid}/${startTicks}`));
      if (fresh.length === 0) return;
      for (const { pid, startTicks } of fresh) known.add(`${pid}/${startTicks}`);
      send({ kind: 'members', members: fresh.map(({ pid, startTicks }) => ({ pid, startTicks })) });
    },
    release: () => send({ kind: 'released' }),
    async dismiss() {
      send({ kind: 'over' });
      await within(gone, PATIENCE_MS);
    },
  };
}

const within = async (wait: Promise<void>, ms: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    wait,
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    }),
  ]);
  clearTimeout(timer);
};
