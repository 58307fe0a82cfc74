import { SKIM_WORDS } from '../signatures/index.ts';
import type { LineWatcher } from '../watch.ts';
import { type ByteScan, countNewlines, createByteScan } from './byte-scan.ts';

const KiB = 1024;
/** Read in full before a telling word: its traceback, the bars above it, the prefixes of the lines around. */
const BEFORE = 64 * KiB;
/** Read in full after it: the rest of the message, and whether training goes on. */
const AFTER = 128 * KiB;
/** The end of a log tells how it ended, whatever it says. */
const LAST = 192 * KiB;
const FIRST = 64 * KiB;
const BLOCK = 1024 * KiB;
/** The same line with other figures, over and over, opens no further window: its first and last are known. */
const SAME_SHAPE = 12;
const SHAPE_LETTERS = 96;
const MOST_SHAPES = 4096;
/** Past this much read in full, windows shrink: a log full of telling words is read like any other. */
const PLENTY = 48 * KiB * KiB;
const NARROW = 4 * KiB;

const NEWLINE = 0x0a;
const RETURN = 0x0d;
let scanOnce: ByteScan | undefined;

/** Places where a word of a signature may begin. Its table is made when the first log is searched. */
export const scanForHints: ByteScan = (bytes, from, to, hit) => {
  scanOnce ??= createByteScan(SKIM_WORDS);
  scanOnce(bytes, from, to, hit);
};

/** Takes a log in pieces and hands the watcher what may matter; the rest is only counted. */
export interface Skimmer {
  readonly push: (chunk: Uint8Array) => void;
  readonly end: () => void;
}

const isLineEnd = (byte: number | undefined): boolean => byte === NEWLINE || byte === RETURN;

/** First byte of the line that `at` stands in, no earlier than `least`. */
function lineStart(bytes: Uint8Array, at: number, least: number): number {
  let start = at;
  while (start > least && !isLineEnd(bytes[start - 1])) start--;
  return start;
}

/** A number for a line without its digits, so that a step counter makes no new line of it. */
export function shapeAt(bytes: Uint8Array, at: number): number {
  let shape = 17;
  const start = lineStart(bytes, at, Math.max(0, at - SHAPE_LETTERS));
  const end = Math.min(bytes.length, at + 24);
  for (let index = start; index < end; index++) {
    const byte = bytes[index]!;
    if (isLineEnd(byte)) break;
    if (byte < 0x30 || byte > 0x39) shape = (Math.imul(shape, 31) + byte) | 0;
  }
  return shape;
}

/**
 * Reads a log of any size at the speed of a search: only windows around lines that may match a signature are taken apart, and the
 * first and last part of it. Small logs are read whole.
 */
export function createSkimmer(watcher: LineWatcher): Skimmer {
  /** Bytes not handed on yet are the first `length`; the first `searched` of them have been searched. Used over and over. */
  let buffer = new Uint8Array(FIRST);
  let length = 0;
  let searched = 0;
  /** Bytes from the first held one that are to be read in full. */
  let open = FIRST;
  let readInFull = 0;
  /** Bytes that came since the last look. */
  let fresh = 0;
  const shapes = new Map<number, number>();

  const opensWindow = (bytes: Uint8Array, at: number): boolean => {
    const shape = shapeAt(bytes, at);
    const seen = shapes.get(shape) ?? 0;
    if (seen > 0 || shapes.size < MOST_SHAPES) shapes.set(shape, seen + 1);
    return seen < (readInFull > PLENTY ? 2 : SAME_SHAPE);
  };
  const feed = (bytes: Uint8Array, from: number, to: number): void => {
    if (to <= from) return;
    readInFull += to - from;
    watcher.push('stderr', bytes.subarray(from, to));
  };
  const skip = (bytes: Uint8Array, from: number, to: number): void => {
    if (to > from) watcher.skip(countNewlines(bytes, from, to));
  };

  const digest = (): void => {
    const bytes = buffer.subarray(0, length);
    let at = 0;
    /** Reads on as far as the open window goes, to the end of a line. */
    const readOpen = (limit: number): void => {
      if (open <= 0) return;
      let to = Math.min(limit, at + open);
      while (to < limit && !isLineEnd(bytes[to - 1])) to++;
      feed(bytes, at, to);
      open = Math.max(to < limit || isLineEnd(bytes[to - 1]) ? 0 : 1, open - (to - at));
      at = to;
    };
    const narrow = (): boolean => readInFull > PLENTY;
    // The last bytes may hold the beginning of a word; they are searched again with what follows.
    const searchable = Math.max(searched, bytes.length - 64);
    scanForHints(bytes, searched, searchable, (offset) => {
      if (offset < at + open - AFTER / 2 || !opensWindow(bytes, offset)) return;
      const start = lineStart(bytes, Math.max(at, offset - (narrow() ? NARROW : BEFORE)), at);
      readOpen(start);
      if (open <= 0) {
        skip(bytes, at, start);
        at = start;
      }
      open = Math.max(open, offset - at + (narrow() ? NARROW : AFTER));
    });
    const keepFrom = Math.max(0, bytes.length - LAST);
    readOpen(bytes.length);
    if (open <= 0 && at < keepFrom) {
      const start = Math.max(at, lineStart(bytes, keepFrom, at));
      skip(bytes, at, start);
      at = start;
    }
    buffer.copyWithin(0, at, length);
    length -= at;
    searched = Math.max(0, searchable - at);
    fresh = 0;
  };

  return {
    push(chunk) {
      if (length + chunk.length > buffer.length) {
        const larger = new Uint8Array(2 * (length + chunk.length));
        larger.set(buffer.subarray(0, length));
        buffer = larger;
      }
      buffer.set(chunk, length);
      length += chunk.length;
      fresh += chunk.length;
      if (fresh >= BLOCK) digest();
    },
    end() {
      digest();
      feed(buffer, 0, length);
      length = 0;
    },
  };
}
