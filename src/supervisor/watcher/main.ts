import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { openOutputLog } from '../output-log.ts';
import { createProcessTree, type ProcessTree } from '../process-tree.ts';
import { createSaveWatch } from '../save-watch.ts';
import { createTreeStopper } from '../stop-tree.ts';
import { MARK_VARIABLE, type WatcherMessage, type WatcherReport } from './messages.ts';

/**
 * The watcher: a process beside snug that sleeps until its channel ends. If snug ended without a word (SIGKILL, the OOM killer, a
 * fault), it gives the attempt's tree SIGTERM, goes on reading what it writes, so that a trainer can save in peace, and SIGKILL
 * after the grace.
 */

type Attempt = Extract<WatcherMessage, { kind: 'attempt' }>;
/** The reading end of a stream; nothing is read before it is asked for. */
interface ReadingEnd {
  readonly close: () => void;
  readonly open: () => Socket;
}

/** Launchers hand SIGTERM on at once; whoever has not got it by then gets it from us. */
const PASS_ON_MS = 1_500;
/** For what was found only after the rest had ended. */
const LATECOMER_GRACE_MS = 1_000;

let attempt: Attempt | undefined;
let tree: ProcessTree | undefined;
let leader = 0;
const pipes = new Map<'stdout' | 'stderr', ReadingEnd>();

/** Undefined: snug is gone already, and its descriptors with it. */
function openPipe(path: string): ReadingEnd | undefined {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return { close: () => closeSync(fd), open: () => new Socket({ fd, readable: true, writable: false }) };
  } catch {
    return undefined;
  }
}

/** Around libuv's handle of a socket. */
const ofHandle = (handle: { readonly close: () => void }): ReadingEnd => ({
  close: () => handle.close(),
  open: () => new Socket({ handle, readable: true, writable: false } as object),
});

const forget = (): void => {
  for (const pipe of pipes.values()) pipe.close();
  pipes.clear();
  attempt = undefined;
  tree = undefined;
  leader = 0;
};

/** Reads on where snug stopped: a full pipe would block the trainer, a closed one break it in the middle of a save. */
function readOn(logPath: string): () => void {
  const log = openOutputLog(logPath, 'again');
  const sockets = [...pipes].map(([name, end]) => {
    const socket = end.open();
    socket.on('data', (chunk: Buffer) => log.write(name, chunk));
    socket.on('error', () => {});
    return socket;
  });
  return () => {
    for (const socket of sockets) socket.destroy();
    log.close();
  };
}

async function endAttempt({ mark, graceMs, logPath, outputDir, reportPath }: Attempt): Promise<void> {
  const foundAt = new Date().toISOString();
  const report = (endedAt: string | null, left: readonly number[]): void => {
    const content: WatcherReport = { because: 'snug-is-gone', foundAt, endedAt, graceMs, left };
    const { foundAt: found_at, endedAt: ended_at, graceMs: grace_ms, ...rest } = content;
    try {
      writeFileSync(reportPath, `${JSON.stringify({ ...rest, found_at, ended_at, grace_ms }, null, 2)}\n`);
    } catch {
      // Ending the processes matters more than telling of it.
    }
  };
  report(null, []);
  const close = readOn(logPath);
  const all = tree ?? createProcessTree(0, false);
  const assignment = `${MARK_VARIABLE}=${mark}`;
  all.findMarked(assignment);
  const holdOn = outputDir === undefined ? undefined : createSaveWatch(outputDir);
  const passOnMs = Math.min(PASS_ON_MS, graceMs / 3);
  let left = await createTreeStopper(all, leader, { holdOn }).stop({ graceMs, passOnMs });
  all.findMarked(assignment);
  if (all.live().length > 0) left = await createTreeStopper(all, leader).stop({ graceMs: LATECOMER_GRACE_MS });
  close();
  report(new Date().toISOString(), left);
}

process.on('message', (message: WatcherMessage, handle: { readonly close: () => void } | undefined) => {
  switch (message.kind) {
    case 'attempt':
      forget();
      attempt = message;
      return;
    case 'leader':
      leader = message.leader.pid;
      tree = createProcessTree(leader, message.ownSession, message.leader.startTicks);
      return;
    case 'stream': {
      const end = message.path === undefined ? handle && ofHandle(handle) : openPipe(message.path);
      if (attempt && end) pipes.set(message.name, end);
      else end?.close();
      return;
    }
    case 'members':
      tree?.adopt(message.members);
      return;
    case 'released':
      forget();
      return;
    case 'over':
      process.exit(0);
  }
});
process.on('disconnect', () => {
  if (!attempt) process.exit(0);
  endAttempt(attempt).finally(() => process.exit(0));
});
// A scheduler's signal to the whole job is snug's to deal with; this process ends when snug has.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const) process.on(name, () => {});
process.send?.('ready');
