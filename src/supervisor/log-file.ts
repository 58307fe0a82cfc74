import { closeSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { createLogEnd, joinLogEnd, writeAll } from './log-end.ts';

/**
 * A file that takes bytes for as long as they come. Up to its limit it is complete. Past that, its first half and what came last
 * (at least a quarter of the limit) are kept, with a line `snug| …` in the gap. What comes last waits beside the file, and is joined to
 * it at the end; a crash before that leaves it there, readable by itself.
 */
export interface LogFile {
  readonly append: (bytes: Uint8Array) => void;
  readonly close: () => void;
}

const LINE_END = 0x0a;

/** A fresh log. Throws what the file system throws. */
export function createLogFile(path: string, limitBytes: number): LogFile {
  mkdirSync(dirname(path), { recursive: true });
  const fd = openSync(path, 'w');
  const headLimit = Math.ceil(limitBytes / 2);
  const end = createLogEnd(path, Math.max(1, Math.floor(limitBytes / 4)));
  let headBytes = 0;
  return {
    append(bytes) {
      if (headBytes === headLimit) {
        end.append(bytes);
        return;
      }
      const head = bytes.subarray(0, headLimit - headBytes);
      writeAll(fd, head);
      headBytes += head.length;
      end.append(bytes.subarray(head.length));
    },
    close() {
      end.close();
      joinLogEnd(fd, path, end.leftOut());
      closeSync(fd);
    },
  };
}

/** A last line is looked for in so much of the end. */
const LAST_LINE_BYTES = 64 * 1024;

export interface ReopenedLog {
  readonly file: LogFile;
  /** The last line, where it has not ended. */
  readonly unfinished: Buffer | undefined;
}

/** Goes on in a log that somebody else had to leave. It has no limit any more. */
export function reopenLogFile(path: string): ReopenedLog {
  const fd = openSync(path, 'a+');
  joinLogEnd(fd, path, undefined);
  const { size } = fstatSync(fd);
  const end = Buffer.alloc(Math.min(size, LAST_LINE_BYTES));
  const last = end.subarray(0, readSync(fd, end, 0, end.length, size - end.length));
  const line = last.subarray(last.lastIndexOf(LINE_END) + 1);
  return {
    file: { append: (bytes) => writeAll(fd, bytes), close: () => closeSync(fd) },
    unfinished: line.length > 0 ? line : undefined,
  };
}
