import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * A file that takes bytes for as long as they come. Up to its limit it is complete. Past that, its first half and what came last
 * (at least a quarter of the limit) are kept, with a line `snug| …` in the gap. What comes last waits in two segments beside the
 * file, which take turns, and is joined to it at the end; a crash before that leaves the segments, each readable by itself.
 */
export interface LogFile {
  readonly append: (bytes: Uint8Array) => void;
  readonly close: () => void;
}

const COPY_BYTES = 1 << 20;
const LINE_END = 0x0a;

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Where the end of a log waits until it is closed, older part first. */
export const segmentsOf = (path: string): readonly [string, string] => [`${path}.end-1`, `${path}.end-2`];

function copyInto(fd: number, from: string): void {
  if (sizeOf(from) === 0) return;
  const source = openSync(from, 'r');
  const piece = Buffer.allocUnsafe(COPY_BYTES);
  for (let got = readSync(source, piece); got > 0; got = readSync(source, piece)) writeAll(fd, piece.subarray(0, got));
  closeSync(source);
}

/** Joins the segments to the file. `leftOut`: bytes in the gap before them; undefined: not known any more. */
function join(fd: number, path: string, leftOut: number | undefined): void {
  const segments = segmentsOf(path);
  if (leftOut !== 0 && segments.some((segment) => sizeOf(segment) > 0)) {
    const amount = leftOut === undefined ? 'bytes may be' : `${leftOut} bytes are`;
    writeAll(fd, Buffer.from(`\nsnug| ${amount} left out here: the log had reached its limit\n`));
  }
  for (const segment of segments) copyInto(fd, segment);
  for (const segment of segments) rmSync(segment, { force: true });
}

/** A fresh log. Throws what the file system throws. */
export function createLogFile(path: string, limitBytes: number): LogFile {
  mkdirSync(dirname(path), { recursive: true });
  const fd = openSync(path, 'w');
  const headLimit = Math.ceil(limitBytes / 2);
  const segmentLimit = Math.max(1, Math.floor(limitBytes / 4));
  const [older, newer] = segmentsOf(path);
  let headBytes = 0;
  let segment: number | undefined;
  let segmentBytes = 0;
  let leftOut = 0;
  const nextSegment = (): number => {
    if (segment !== undefined) {
      closeSync(segment);
      leftOut += sizeOf(older);
      // Removed first: a rename onto a file makes ext4 write the new one out to the disk, many times a second in a flood.
      rmSync(older, { force: true });
      renameSync(newer, older);
    }
    segmentBytes = 0;
    segment = openSync(newer, 'w');
    return segment;
  };
  return {
    append(bytes) {
      const head = bytes.subarray(0, Math.max(0, headLimit - headBytes));
      writeAll(fd, head);
      headBytes += head.length;
      for (let rest = bytes.subarray(head.length); rest.length > 0; ) {
        const open = segment === undefined || segmentBytes >= segmentLimit ? nextSegment() : segment;
        const part = rest.subarray(0, segmentLimit - segmentBytes);
        writeAll(open, part);
        segmentBytes += part.length;
        rest = rest.subarray(part.length);
      }
    },
    close() {
      if (segment !== undefined) closeSync(segment);
      join(fd, path, leftOut);
      closeSync(fd);
    },
  };
}

/** Goes on, on a line of its own, in a log that somebody else had to leave. It has no limit any more. */
export function reopenLogFile(path: string): LogFile {
  const fd = openSync(path, 'a+');
  join(fd, path, undefined);
  const { size } = fstatSync(fd);
  const last = Buffer.alloc(1);
  if (size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== LINE_END) writeAll(fd, Buffer.from('\n'));
  return { append: (bytes) => writeAll(fd, bytes), close: () => closeSync(fd) };
}
