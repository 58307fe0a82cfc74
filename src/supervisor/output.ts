import type { LineWatcher, OutputStream } from '../diagnosis/index.ts';
import type { AttemptRequest } from './contract.ts';
import { createFloodWatch } from './flood-watch.ts';
import { createForwarder } from './forward.ts';
import { openOutputLog } from './output-log.ts';
import type { Child } from './start-child.ts';

const LINE_END = 0x0a;

/** Of `output.log`. A day of a chatty trainer is a hundredth of it. */
const LOG_LIMIT_BYTES = 2 ** 30;

/** A reader of our own output that takes nothing for this long is given up. */
const STALLED_READER_MS = 10_000;

/** The child's two streams on their way to the terminal, the log and the watcher. */
export interface HandedOn {
  /** Both pipes have been read to their end. */
  readonly finished: () => boolean;
  /** Streams whose last byte was no line end: whoever writes to them next must begin a new line. */
  readonly unfinishedLines: () => readonly OutputStream[];
  /** The same; they count as ended from then on. */
  readonly interrupt: () => readonly OutputStream[];
  /** Stops reading, whoever still holds the other end. */
  readonly cutOff: () => void;
  /** Nothing more will be read: the watcher gets what was kept back. */
  readonly allRead: () => void;
  /** Hands over what is left and closes the log. */
  readonly close: () => Promise<void>;
}

export interface HandOnOptions {
  readonly onFatal: () => void;
  /** Something came on either stream. */
  readonly onOutput?: (() => void) | undefined;
}

export function handOn(
  request: AttemptRequest,
  child: Child,
  watcher: LineWatcher,
  { onFatal, onOutput }: HandOnOptions,
): HandedOn {
  const log = openOutputLog(request.logPath, {
    limitBytes: request.logLimitBytes ?? LOG_LIMIT_BYTES,
    secrets: request.secrets,
  });
  const flood = createFloodWatch(watcher);
  const open = new Set<OutputStream>(['stdout', 'stderr']);
  const unfinished = new Set<OutputStream>();
  const forwarders = (['stdout', 'stderr'] as const).map((name) => {
    const source = child[name];
    const forwarder = createForwarder(request[name], `${request.logPath}.${name}.waiting`, source);
    const take = (chunk: Buffer): void => {
      // Kept before it is shown: a kill in between must not lose what somebody has read.
      const lines = log.write(name, chunk);
      forwarder.write(chunk);
      if (chunk.at(-1) === LINE_END) unfinished.delete(name);
      else unfinished.add(name);
      onOutput?.();
      if (flood.push(name, chunk, lines)) onFatal();
    };
    source.read(take, () => open.delete(name));
    return forwarder;
  });
  return {
    finished: () => open.size === 0,
    unfinishedLines: () => [...unfinished],
    interrupt() {
      const open = [...unfinished];
      unfinished.clear();
      return open;
    },
    cutOff: () => {
      child.stdout.destroy();
      child.stderr.destroy();
    },
    allRead: flood.end,
    async close() {
      log.close();
      await Promise.all(forwarders.map((forwarder) => forwarder.flush(STALLED_READER_MS)));
    },
  };
}
