import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { createByteQueue, type QueuedPiece } from './byte-queue.ts';
import { keepFromWaiting } from './patient-terminal.ts';

/** Waiting bytes held in memory before they go to disk. */
const IN_MEMORY = 2 * 1024 * 1024;
/** With this much waiting the source rests, so that a reader as fast as us is given the time to catch up. */
const REST_AT = 1024 * 1024;
const REST_OVER_AT = 256 * 1024;
/** Far less than anybody notices in a step. A reader that needs longer is slow, and the trainer does not wait for it. */
const REST_MS = 50;

/**
 * Hands bytes on to a stream that may be slower than the trainer. What does not fit waits, in memory and then in a file, so
 * the trainer never waits for a terminal or a pager, and memory stays bounded.
 */
export interface Forwarder {
  /** `chunk` may be overwritten afterwards: what has to wait of it is copied. */
  readonly write: (chunk: Uint8Array) => void;
  /** Resolves once everything is handed over, or the other side is gone, or takes nothing for `stalledMs`. */
  readonly flush: (stalledMs: number) => Promise<void>;
}

/** Streams that have a listener for errors after we are done with them: a pipe that breaks then must not end us. */
const guarded = new WeakSet<NodeJS.WritableStream>();

function guard(target: NodeJS.WritableStream): void {
  if (guarded.has(target)) return;
  guarded.add(target);
  target.on('error', () => {});
}

/**
 * The descriptor behind one of our own streams, to write to it without the stream: a flood spends more in that than in the kernel.
 * A pipe does not wait (Node has it not block), a file takes everything. A terminal is left to its stream.
 */
function descriptorOf(target: NodeJS.WritableStream): number | undefined {
  const own = [process.stdout, process.stderr].find((stream) => stream === target);
  return own && !own.isTTY ? own.fd : undefined;
}

/** Bytes that a stream has taken and not written yet. */
const behind = (target: NodeJS.WritableStream): number =>
  (target as { readonly writableLength?: number }).writableLength ?? 0;

/** Where the bytes come from. */
export interface Source {
  readonly pause: () => unknown;
  readonly resume: () => unknown;
}

export function createForwarder(target: NodeJS.WritableStream, spoolPath: string, source?: Source): Forwarder {
  const descriptor = descriptorOf(target);
  const letWait = keepFromWaiting(target);
  const waiting = createByteQueue();
  let spool: number | undefined;
  let spoolRead = 0;
  let spoolWritten = 0;
  let blocked = false;
  let broken = false;
  let progress = 0;
  let dropped = 0;
  let onIdle: (() => void) | undefined;

  let resting: NodeJS.Timeout | undefined;
  let tooSlow = false;
  const endRest = (): void => {
    if (!resting) return;
    clearTimeout(resting);
    resting = undefined;
    source?.resume();
  };
  const rest = (): void => {
    if (resting || tooSlow || !source) return;
    source.pause();
    resting = setTimeout(() => {
      tooSlow = true;
      endRest();
    }, REST_MS);
  };

  const isIdle = (): boolean => broken || (!blocked && waiting.length() === 0 && spoolRead === spoolWritten);
  const dropSpool = (): void => {
    if (spool === undefined) return;
    closeSync(spool);
    spool = undefined;
    spoolRead = spoolWritten = 0;
  };
  const hand = (bytes: Buffer, onWritten?: () => void): void => {
    progress++;
    // A stream calls its `write` callback in any case; `false` asks to wait for `drain`.
    if (!target.write(bytes, onWritten)) blocked = true;
  };
  /** How much of it was taken at once. What is the matter with the rest, the stream finds out. */
  const handDirectly = (bytes: Uint8Array): number => {
    if (descriptor === undefined || behind(target) > 0) return 0;
    try {
      progress++;
      return writeSync(descriptor, bytes);
    } catch {
      return 0;
    }
  };
  const handPiece = (piece: QueuedPiece): void => {
    const done = handDirectly(piece.bytes);
    // A stream of somebody else's may keep what it is given.
    if (descriptor === undefined) hand(piece.bytes);
    else if (done === piece.bytes.length) waiting.giveBack(piece);
    else hand(piece.bytes.subarray(done), () => waiting.giveBack(piece));
  };
  const pump = (): void => {
    while (!blocked && !broken) {
      const piece = waiting.take();
      if (!piece) break;
      handPiece(piece);
    }
    while (!blocked && !broken && spool !== undefined && spoolRead < spoolWritten) {
      const block = waiting.borrow();
      const got = readSync(spool, block, 0, Math.min(block.length, spoolWritten - spoolRead), spoolRead);
      spoolRead += got;
      handPiece({ bytes: block.subarray(0, got), block });
    }
    if (spoolRead === spoolWritten) dropSpool();
    if (waiting.length() <= REST_OVER_AT) endRest();
    if (waiting.length() === 0 && spool === undefined) tooSlow = false;
    if (isIdle()) onIdle?.();
  };
  const store = (chunk: Uint8Array): void => {
    if (spool === undefined && waiting.length() + chunk.length <= IN_MEMORY) {
      waiting.add(chunk);
      if (waiting.length() >= REST_AT) rest();
      return;
    }
    try {
      if (spool === undefined) {
        spool = openSync(spoolPath, 'w+');
        // Unlinked while open: nothing is left behind, however we end.
        unlinkSync(spoolPath);
      }
      for (let done = 0; done < chunk.length; ) {
        const wrote = writeSync(spool, chunk, done, chunk.length - done, spoolWritten);
        done += wrote;
        spoolWritten += wrote;
      }
    } catch {
      // No room on disk either: holding it all would end in the very thing we guard against.
      dropped += chunk.length;
    }
  };
  const onDrain = (): void => {
    blocked = false;
    progress++;
    pump();
  };
  const onBroken = (): void => {
    broken = true;
    waiting.clear();
    dropSpool();
    endRest();
    onIdle?.();
  };
  guard(target);
  target.on('drain', onDrain);
  target.on('error', onBroken);
  target.on('close', onBroken);

  return {
    write(chunk) {
      if (broken) return;
      if (blocked || waiting.length() > 0 || spool !== undefined) {
        store(chunk);
        return;
      }
      const done = handDirectly(chunk);
      if (done === chunk.length) return;
      waiting.add(chunk.subarray(done));
      pump();
    },
    async flush(stalledMs) {
      if (!isIdle()) {
        await new Promise<void>((resolve) => {
          let before = progress;
          const timer = setInterval(() => {
            if (progress === before) onIdle?.();
            before = progress;
          }, stalledMs);
          onIdle = () => {
            clearInterval(timer);
            onIdle = undefined;
            resolve();
          };
        });
      }
      if (dropped > 0 && !broken) target.write(`\nsnug: ${dropped} bytes of the output could not be shown here\n`);
      target.off('drain', onDrain);
      target.off('close', onBroken);
      target.off('error', onBroken);
      dropSpool();
      letWait();
    },
  };
}
