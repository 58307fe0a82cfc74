import {
  countNewlines,
  type FatalHit,
  type LineWatcher,
  type OutputStream,
  scanForHints,
  shapeAt,
} from '../diagnosis/index.ts';
import { afterFirstLine, createHeldEnd, type HeldEnd } from './held-end.ts';

/** Part of the time that may go into taking lines apart; a chatty trainer needs a hundredth of it. */
const SHARE_OF_TIME = 0.03;
/** And how much of it at once, milliseconds. */
const AT_ONCE_MS = 250;
/** A line that goes on for longer than this is passed over in its middle. */
const LONG_LINE = 32 * 1024;
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
const STREAMS: readonly OutputStream[] = ['stdout', 'stderr'];

/** Watches output of any speed. */
export interface FloodWatch {
  /** `lines`: how many line ends are in `chunk`, where that is known already. Its bytes may change afterwards. */
  readonly push: (stream: OutputStream, chunk: Buffer, lines?: number) => FatalHit | undefined;
  /** Hands on what was kept back. Before `end` of the watcher. */
  readonly end: () => void;
}

/** For tests; the defaults are meant for everyone. */
export interface FloodBudget {
  readonly share?: number;
  readonly atOnceMs?: number;
}

interface Lane {
  /** The end of what was skipped. Undefined: nothing is being skipped. */
  held: HeldEnd | undefined;
  /** Bytes that are read in full, whatever it costs. */
  open: number;
  /** Bytes read since a line began that has not ended. */
  unended: number;
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
  const passOver = (stream: OutputStream, held: HeldEnd): void => {
    const letGo = held.takeLetGo();
    if (letGo) watcher.skip(letGo.lines, { stream, place: letGo.place });
  };
  const read = (stream: OutputStream, bytes: Uint8Array): FatalHit | undefined => {
    const began = performance.now();
    // The lines of both streams are counted together.
    for (const other of STREAMS) if (other !== stream && lanes[other].held) passOver(other, lanes[other].held);
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
  const tellsAtBorder = (before: Buffer, chunk: Buffer): boolean => {
    if (before.length === 0) return false;
    const end = before.subarray(Math.max(0, before.length - LONGEST_WORD - LINE_HEAD));
    const seam = Buffer.concat([end, chunk.subarray(0, LONGEST_WORD)]);
    return tells(seam, Math.max(0, end.length - LONGEST_WORD), end.length);
  };
  const handOn = (stream: OutputStream, lane: Lane): FatalHit | undefined => {
    const { held } = lane;
    if (!held) return undefined;
    passOver(stream, held);
    lane.held = undefined;
    return read(stream, held.bytes());
  };
  const skim = (stream: OutputStream, lane: Lane, chunk: Buffer, lines: number): FatalHit | undefined => {
    const { held } = lane;
    if (held) {
      if (!tellsAtBorder(held.bytes(), chunk) && !tells(chunk, 0, chunk.length)) {
        held.add(chunk, lines);
        return undefined;
      }
      const before = handOn(stream, lane);
      lane.open = AFTER;
      return read(stream, chunk) ?? before;
    }
    // The line that has begun is read to its end, unless it has none.
    const end = afterFirstLine(chunk);
    lane.unended = end === 0 ? lane.unended + chunk.length : 0;
    if (end === 0 && lane.unended < LONG_LINE) return read(stream, chunk);
    // Some words begin with a line end.
    if (tells(chunk, Math.max(0, end - 1), chunk.length)) {
      lane.open = AFTER;
      return read(stream, chunk);
    }
    lane.held = createHeldEnd();
    const hit = end === 0 ? undefined : read(stream, chunk.subarray(0, end));
    lane.held.add(chunk.subarray(end), lines - (chunk[end - 1] === NEWLINE ? 1 : 0));
    return hit;
  };

  return {
    push(stream, chunk, lines) {
      refill();
      const lane = lanes[stream];
      if (lane.open > 0) {
        lane.open -= chunk.length;
        return read(stream, chunk);
      }
      if (budgetMs <= 0) return skim(stream, lane, chunk, lines ?? countNewlines(chunk, 0, chunk.length));
      const before = handOn(stream, lane);
      return read(stream, chunk) ?? before;
    },
    end() {
      for (const stream of STREAMS) handOn(stream, lanes[stream]);
    },
  };
}
