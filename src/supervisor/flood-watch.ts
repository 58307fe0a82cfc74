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
const AT_ONCE_MS = 500;
/** Kept back while skipping: the traceback above a message. */
const CONTEXT = 32 * 1024;
/** Read in full after a telling word: the rest of the message, and whether training goes on. */
const AFTER = 128 * 1024;
/** The same line with other figures, over and over, is read no more. */
const SAME_SHAPE = 12;
const MOST_SHAPES = 4096;
const NEWLINE = 0x0a;

/** Watches output of any speed. */
export interface FloodWatch {
  readonly push: (stream: OutputStream, chunk: Uint8Array) => FatalHit | undefined;
  /** Hands on what was kept back. Before `end` of the watcher. */
  readonly end: () => void;
}

/** For tests; the defaults are meant for everyone. */
export interface FloodBudget {
  readonly share?: number;
  readonly atOnceMs?: number;
}

interface Lane {
  /** Not handed on: the end of what was skipped, from the start of a line. Undefined: nothing is being skipped. */
  held: Buffer | undefined;
  /** Bytes that are read in full, whatever it costs. */
  open: number;
}

/**
 * Every line is read as long as they come at a pace that costs little. A flood is searched for words of the signatures instead, and
 * read only around those: the trainer must never wait for its watcher.
 */
export function createFloodWatch(
  watcher: LineWatcher,
  { share = SHARE_OF_TIME, atOnceMs = AT_ONCE_MS }: FloodBudget = {},
): FloodWatch {
  const lanes: Record<OutputStream, Lane> = {
    stdout: { held: undefined, open: 0 },
    stderr: { held: undefined, open: 0 },
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
  const tells = (bytes: Uint8Array): boolean => {
    let telling = false;
    scanForHints(bytes, 0, bytes.length, (offset) => {
      if (telling) return;
      const shape = shapeAt(bytes, offset);
      const seen = shapes.get(shape) ?? 0;
      if (seen > 0 || shapes.size < MOST_SHAPES) shapes.set(shape, seen + 1);
      telling = seen < SAME_SHAPE;
    });
    return telling;
  };
  const skim = (stream: OutputStream, lane: Lane, chunk: Uint8Array): FatalHit | undefined => {
    let hit: FatalHit | undefined;
    let fresh = chunk;
    if (!lane.held) {
      // The line that has begun is read to its end.
      const end = chunk.indexOf(NEWLINE) + 1;
      if (end === 0) return read(stream, chunk);
      hit = read(stream, chunk.subarray(0, end));
      fresh = chunk.subarray(end);
    }
    const bytes = lane.held && lane.held.length > 0 ? Buffer.concat([lane.held, fresh]) : Buffer.from(fresh);
    // Of what is held, the last bytes may be the beginning of a word.
    if (tells(bytes.subarray(Math.max(0, (lane.held?.length ?? 0) - 64)))) {
      lane.held = undefined;
      lane.open = AFTER;
      return read(stream, bytes) ?? hit;
    }
    const cut = bytes.lastIndexOf(NEWLINE, Math.max(0, bytes.length - CONTEXT)) + 1;
    watcher.skip(countNewlines(bytes, 0, cut));
    lane.held = bytes.subarray(cut);
    return hit;
  };
  const handOn = (stream: OutputStream, lane: Lane): FatalHit | undefined => {
    const held = lane.held;
    lane.held = undefined;
    return held && held.length > 0 ? read(stream, held) : undefined;
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
