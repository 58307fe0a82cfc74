import {
  countNewlines,
  type FatalHit,
  type LineWatcher,
  type OutputStream,
  scanForHints,
  shapeAt,
} from '../diagnosis/index.ts';

/** Part of the time that may go into taking lines apart; a chatty trainer needs a hundredth of it. */
const SHARE_OF_TIME = 0.05;
/** And how much of it at once, milliseconds. */
const AT_ONCE_MS = 250;
/** Kept back while skipping: the traceback above a message. */
const CONTEXT = 32 * 1024;
/** Read in full after a telling word: the rest of the message, and whether training goes on. */
const AFTER = 128 * 1024;
/** The same line with other figures, over and over, is read no more. */
const SAME_SHAPE = 12;
const MOST_SHAPES = 4096;
/** Longer than any word that is searched for. */
const LONGEST_WORD = 64;
/** What of a line before a word tells its shape. */
const LINE_HEAD = 128;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** Watches output of any speed. */
export interface FloodWatch {
  /** Keeps `chunk` for a while: its bytes must not change afterwards. */
  readonly push: (stream: OutputStream, chunk: Buffer) => FatalHit | undefined;
  /** Hands on what was kept back. Before `end` of the watcher. */
  readonly end: () => void;
}

/** For tests; the defaults are meant for everyone. */
export interface FloodBudget {
  readonly share?: number;
  readonly atOnceMs?: number;
}

/** What was searched, and is not handed on. */
interface Held {
  readonly chunks: Buffer[];
  bytes: number;
}

interface Lane {
  /** The end of what was skipped. Undefined: nothing is being skipped. */
  held: Held | undefined;
  /** Bytes that are read in full, whatever it costs. */
  open: number;
  /** Bytes read since a line began that has not ended. */
  unended: number;
}

/** Behind the first line end of `bytes`, a refresh of a bar only where there is no other; 0: there is none. */
const afterFirstLine = (bytes: Buffer): number => bytes.indexOf(NEWLINE) + 1 || bytes.indexOf(RETURN) + 1;

/**
 * Every line is read as long as they come at a pace that costs little. A flood is searched for words of the signatures instead, and
 * read only around those: the trainer must never wait for its watcher.
 */
export function createFloodWatch(
  watcher: LineWatcher,
  { share = SHARE_OF_TIME, atOnceMs = AT_ONCE_MS }: FloodBudget = {},
): FloodWatch {
  const lanes: Record<OutputStream, Lane> = {
    stdout: { held: undefined, open: 0, unended: 0 },
    stderr: { held: undefined, open: 0, unended: 0 },
  };
  const shapes = new Map<number, number>();
  let budgetMs = atOnceMs;
  let last = performance.now();

  const refill = (): void => {
    const at = performance.now();
    budgetMs = Math.min(atOnceMs, budgetMs + (at - last) * share);
    last = at;
  };
  const read = (stream: OutputStream, bytes: Uint8Array): FatalHit | undefined => {
    const began = performance.now();
    const hit = watcher.push(stream, bytes);
    budgetMs -= performance.now() - began;
    return hit;
  };
  const tells = (bytes: Uint8Array, from: number, to: number): boolean => {
    let telling = false;
    scanForHints(bytes, from, to, (offset) => {
      if (telling) return;
      const shape = shapeAt(bytes, offset);
      const seen = shapes.get(shape) ?? 0;
      if (seen > 0 || shapes.size < MOST_SHAPES) shapes.set(shape, seen + 1);
      telling = seen < SAME_SHAPE;
    });
    return telling;
  };
  /** A word may be cut by the border between what is held and what comes. */
  const tellsAtBorder = (before: Buffer | undefined, chunk: Buffer): boolean => {
    if (!before) return false;
    const end = before.subarray(Math.max(0, before.length - LONGEST_WORD - LINE_HEAD));
    const seam = Buffer.concat([end, chunk.subarray(0, LONGEST_WORD)]);
    return tells(seam, Math.max(0, end.length - LONGEST_WORD), end.length);
  };
  /** Passes over the oldest chunks; what stays begins where a line does, unless a line is longer than all of it. */
  const letGo = (stream: OutputStream, held: Held): void => {
    while (held.chunks.length > 1 && held.bytes - held.chunks[0]!.length >= CONTEXT) {
      const oldest = held.chunks.shift()!;
      const next = held.chunks[0]!;
      const cut = afterFirstLine(next);
      held.chunks[0] = next.subarray(cut);
      held.bytes -= oldest.length + cut;
      const lines = countNewlines(oldest, 0, oldest.length) + countNewlines(next, 0, cut);
      const place = cut === 0 ? 'inside' : next[cut - 1] === NEWLINE ? 'line' : 'refresh';
      watcher.skip(lines, { stream, place });
    }
  };
  const handOn = (stream: OutputStream, lane: Lane): FatalHit | undefined => {
    const { held } = lane;
    lane.held = undefined;
    let hit: FatalHit | undefined;
    for (const chunk of held?.chunks ?? []) hit = read(stream, chunk) ?? hit;
    return hit;
  };
  const skim = (stream: OutputStream, lane: Lane, chunk: Buffer): FatalHit | undefined => {
    let hit: FatalHit | undefined;
    let fresh = chunk;
    if (!lane.held) {
      // The line that has begun is read to its end, unless it has none.
      const end = afterFirstLine(chunk);
      lane.unended = end === 0 ? lane.unended + chunk.length : 0;
      if (end === 0 && lane.unended < CONTEXT) return read(stream, chunk);
      hit = end === 0 ? undefined : read(stream, chunk.subarray(0, end));
      fresh = chunk.subarray(end);
      lane.held = { chunks: [], bytes: 0 };
    }
    const { held } = lane;
    if (tellsAtBorder(held.chunks.at(-1), fresh) || tells(fresh, 0, fresh.length)) {
      const before = handOn(stream, lane);
      lane.open = AFTER;
      return read(stream, fresh) ?? before ?? hit;
    }
    held.chunks.push(fresh);
    held.bytes += fresh.length;
    letGo(stream, held);
    return hit;
  };

  return {
    push(stream, chunk) {
      refill();
      const lane = lanes[stream];
      if (lane.open > 0) {
        lane.open -= chunk.length;
        return read(stream, chunk);
      }
      if (budgetMs <= 0) return skim(stream, lane, chunk);
      const before = handOn(stream, lane);
      return read(stream, chunk) ?? before;
    },
    end() {
      for (const stream of ['stdout', 'stderr'] as const) handOn(stream, lanes[stream]);
    },
  };
}
