import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { OpenedLog } from '../jobs/index.ts';

const PIECE = 1024 ** 2;
const GZIP = [0x1f, 0x8b];

/** Pieces of a file or a FIFO; the buffer is used again for the next, so a piece is only valid until then. */
async function* piecesOf(handle: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(PIECE);
  try {
    for (;;) {
      const count = readSync(handle, buffer, 0, PIECE, null);
      if (count === 0) return;
      yield buffer.subarray(0, count);
    }
  } finally {
    closeSync(handle);
  }
}

const isGzip = (piece: Uint8Array): boolean => GZIP.every((byte, index) => piece[index] === byte);

/** Looks at the first piece, and unpacks what is gzip. */
async function unpacked(pieces: AsyncIterable<Uint8Array>): Promise<OpenedLog> {
  const source = pieces[Symbol.asyncIterator]();
  const first = await source.next();
  async function* whole(copied: boolean): AsyncGenerator<Uint8Array> {
    for (let next = first; !next.done; next = await source.next()) yield copied ? next.value.slice() : next.value;
  }
  if (first.done || !isGzip(first.value)) return { ok: true, chunks: whole(false), cutArchive: () => false };
  let cut = false;
  async function* text(): AsyncGenerator<Uint8Array> {
    try {
      yield* Readable.from(whole(true)).pipe(createGunzip());
    } catch {
      // What came before the damage has been read.
      cut = true;
    }
  }
  return { ok: true, chunks: text(), cutArchive: () => cut };
}

/** Opens a log by its path; `-` is stdin. A FIFO (`<(kubectl logs …)`) is read as it comes. */
export async function openLog(path: string): Promise<OpenedLog> {
  if (path === '-') return unpacked(process.stdin);
  try {
    if (statSync(path).isDirectory()) return { ok: false, code: 'EISDIR' };
    return await unpacked(piecesOf(openSync(path, 'r')));
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === undefined) throw thrown;
    return { ok: false, code };
  }
}
