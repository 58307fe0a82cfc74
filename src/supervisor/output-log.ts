import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { OutputStream } from '../diagnosis/index.ts';

const PREFIX: Readonly<Record<OutputStream, Buffer>> = {
  stdout: Buffer.from('out| '),
  stderr: Buffer.from('err| '),
};
const NEWLINE = Buffer.from('\n');

/**
 * Writes `output.log`: the bytes of both streams in the order they came, each line led by `out| ` or `err| `. A change of
 * stream inside a line starts a new one; `\r` and escapes stay as they are. Line numbers of the evidence are those of this file.
 * Written at once, so that nothing is lost when we are killed; a full disk ends the log, not the run.
 */
export interface OutputLog {
  readonly write: (stream: OutputStream, chunk: Uint8Array) => void;
  readonly close: () => void;
  /** Why writing ended early, errno name. */
  readonly failure: () => string | undefined;
}

export function openOutputLog(path: string): OutputLog {
  let failure: string | undefined;
  let fd: number | undefined;
  let owner: OutputStream | undefined;
  let atLineStart = true;

  const attempt = (action: () => void): void => {
    try {
      action();
    } catch (thrown) {
      failure = (thrown as NodeJS.ErrnoException).code ?? 'unknown';
    }
  };
  attempt(() => {
    mkdirSync(dirname(path), { recursive: true });
    fd = openSync(path, 'w');
  });
  const append = (bytes: Uint8Array): void => {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd!, bytes, done);
  };
  return {
    write(stream, chunk) {
      if (fd === undefined || failure !== undefined || chunk.length === 0) return;
      const parts: Uint8Array[] = [];
      if (!atLineStart && owner !== stream) {
        parts.push(NEWLINE);
        atLineStart = true;
      }
      owner = stream;
      for (let from = 0; from < chunk.length; ) {
        if (atLineStart) parts.push(PREFIX[stream]);
        const newline = chunk.indexOf(0x0a, from);
        const end = newline < 0 ? chunk.length : newline + 1;
        parts.push(chunk.subarray(from, end));
        atLineStart = newline >= 0;
        from = end;
      }
      attempt(() => append(Buffer.concat(parts)));
    },
    close() {
      if (fd !== undefined) attempt(() => closeSync(fd!));
      fd = undefined;
    },
    failure: () => failure,
  };
}
