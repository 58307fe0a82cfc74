import { closeSync, openSync, readdirSync, readFileSync, readSync, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { FilePort, ReadOutcome } from '../core/index.ts';

/** Largest text file read whole, bytes. Configs are far smaller; logs above it are read in pieces. */
const TEXT_LIMIT_BYTES = 20 * 1024 ** 2;

const errnoOf = (thrown: unknown): string => (thrown as NodeJS.ErrnoException | undefined)?.code ?? 'EUNKNOWN';

const statOf = (path: string): Stats | undefined => {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
};

/** Opening a FIFO waits for a writer and opening a device can act on it, so only regular files are ever opened. */
function readRegular<T>(path: string, read: (size: number) => ReadOutcome<T>): ReadOutcome<T> {
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) return { ok: false, code: 'EISDIR' };
    if (!stats.isFile()) return { ok: false, code: 'ENOTFILE' };
    return read(stats.size);
  } catch (thrown) {
    return { ok: false, code: errnoOf(thrown) };
  }
}

/** UTF-8 with or without a byte order mark; UTF-16 where its mark says so (PowerShell's `>` writes it). */
function decode(bytes: Uint8Array): string {
  const little = bytes[0] === 0xff && bytes[1] === 0xfe;
  const big = bytes[0] === 0xfe && bytes[1] === 0xff;
  return new TextDecoder(little ? 'utf-16le' : big ? 'utf-16be' : 'utf-8').decode(bytes);
}

function readPiece(path: string, offset: number, length: number): Uint8Array {
  const handle = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const count = readSync(handle, buffer, filled, length - filled, offset + filled);
      if (count === 0) break;
      filled += count;
    }
    return buffer.subarray(0, filled);
  } finally {
    closeSync(handle);
  }
}

/** `FilePort` over the real file system. */
export const filePort: FilePort = {
  info: (path) => {
    const stats = statOf(path);
    if (!stats) return undefined;
    const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other';
    return { kind, sizeBytes: stats.size, modifiedMs: stats.mtimeMs };
  },

  readText: (path) =>
    readRegular(path, (size) =>
      size > TEXT_LIMIT_BYTES ? { ok: false, code: 'ETOOBIG' } : { ok: true, value: decode(readFileSync(path)) },
    ),

  // The size bounds the buffer, so that a wrong length in a corrupt header asks for no more than the file holds.
  readBytes: (path, offset, length) =>
    readRegular(path, (size) => ({
      ok: true,
      value: readPiece(path, offset, Math.max(0, Math.min(length, size - offset))),
    })),

  list: (path) => {
    try {
      return readdirSync(path).sort();
    } catch {
      return [];
    }
  },

  volume: (path) => {
    let existing = resolve(path);
    while (!statOf(existing) && dirname(existing) !== existing) existing = dirname(existing);
    try {
      const { bavail, blocks, bsize } = statfsSync(existing);
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    } catch {
      return undefined;
    }
  },
};
