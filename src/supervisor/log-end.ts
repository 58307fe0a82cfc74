import { closeSync, ftruncateSync, openSync, readSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';

/**
 * What came last of bytes without end: at least one of two segments beside the log, which take turns. Each is written over in place: a
 * file system is twice as fast at that as at giving pages back and finding new ones. A crash leaves them readable: behind the
 * newest bytes a line `snug| …` says that the rest is older.
 */
export interface LogEnd {
  readonly append: (bytes: Uint8Array) => void;
  /** Bytes that were written over. */
  readonly leftOut: () => number;
  /** What is kept is all that the segments hold then. */
  readonly close: () => void;
}

/** Every other line begins with the stream it came from. */
const OLDER_FROM_HERE = Buffer.from('\nsnug| older from here on, and left out\n');
const COPY_BYTES = 1 << 20;

/** Where the end of a log waits until it is closed, older part first. */
const segmentsOf = (path: string): readonly [string, string] => [`${path}.end-1`, `${path}.end-2`];
/** A name for the moment in which they change places; what has it is left out. */
const changingOf = (path: string): string => `${path}.end-0`;

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Writes at `position`, else where the last write ended. */
export function writeAll(fd: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(fd, bytes, done, bytes.length - done, position === undefined ? null : position + done);
  }
}

interface Segment {
  readonly fd: number;
  /** Of what is new in it. */
  bytes: number;
  readonly isReused: boolean;
}

/** Throws what the file system throws. */
export function createLogEnd(path: string, segmentBytes: number): LogEnd {
  const [older, newer] = segmentsOf(path);
  let before: Segment | undefined;
  let current: Segment | undefined;
  let leftOut = 0;
  const fresh = (): Segment => ({ fd: openSync(newer, 'w'), bytes: 0, isReused: false });
  const finish = ({ fd, bytes, isReused }: Segment): void => {
    if (isReused) ftruncateSync(fd, bytes);
  };
  const next = (): Segment => {
    if (!current) return fresh();
    finish(current);
    if (!before) {
      renameSync(newer, older);
      before = current;
      return fresh();
    }
    const { fd, bytes } = before;
    leftOut += bytes;
    writeAll(fd, OLDER_FROM_HERE, 0);
    renameSync(older, changingOf(path));
    renameSync(newer, older);
    renameSync(changingOf(path), newer);
    before = current;
    return { fd, bytes: 0, isReused: true };
  };
  return {
    append(bytes) {
      for (let rest = bytes; rest.length > 0; ) {
        if (!current || current.bytes >= segmentBytes) current = next();
        const part = rest.subarray(0, segmentBytes - current.bytes);
        // First what stands behind it: a kill in between leaves the line that stands there now.
        if (current.isReused) writeAll(current.fd, OLDER_FROM_HERE, current.bytes + part.length);
        writeAll(current.fd, part, current.bytes);
        current.bytes += part.length;
        rest = rest.subarray(part.length);
      }
    },
    leftOut: () => leftOut,
    close() {
      if (current) finish(current);
      for (const segment of [before, current]) if (segment) closeSync(segment.fd);
      before = current = undefined;
    },
  };
}

/** Copies what is new in a segment. */
function copyNewest(fd: number, from: string): void {
  if (sizeOf(from) === 0) return;
  const source = openSync(from, 'r');
  const piece = Buffer.allocUnsafe(COPY_BYTES);
  let at = 0;
  for (
    let got = readSync(source, piece, 0, COPY_BYTES, at);
    got > 0;
    got = readSync(source, piece, 0, COPY_BYTES, at)
  ) {
    const read = piece.subarray(0, got);
    const end = read.indexOf(OLDER_FROM_HERE);
    if (end >= 0) {
      writeAll(fd, read.subarray(0, end));
      break;
    }
    // The line may be cut by the border of the piece.
    const sure = got < COPY_BYTES ? got : got - OLDER_FROM_HERE.length;
    writeAll(fd, read.subarray(0, sure));
    at += sure;
  }
  closeSync(source);
}

/** Joins the end to the log. `leftOut`: bytes in the gap before it; undefined: not known any more. */
export function joinLogEnd(fd: number, path: string, leftOut: number | undefined): void {
  const segments = segmentsOf(path);
  if (leftOut !== 0 && segments.some((segment) => sizeOf(segment) > 0)) {
    const amount = leftOut === undefined ? 'bytes may be' : `${leftOut} bytes are`;
    writeAll(fd, Buffer.from(`\nsnug| ${amount} left out here: the log had reached its limit\n`));
  }
  for (const segment of segments) copyNewest(fd, segment);
  for (const name of [changingOf(path), ...segments]) rmSync(name, { force: true });
}
