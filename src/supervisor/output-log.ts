import type { OutputStream } from '../diagnosis/index.ts';
import { createLogFile, type LogFile, reopenLogFile } from './log-file.ts';
import { createSecretFilter } from './secret-filter.ts';

const PREFIX: Readonly<Record<OutputStream, string>> = { stdout: 'out| ', stderr: 'err| ' };
const NEWLINE = 0x0a;

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

export interface OutputLogOptions {
  /** Past it only head and tail are kept. */
  readonly limitBytes: number;
  /** Values that are replaced by stars of the same length. */
  readonly secrets?: readonly string[] | undefined;
}

/** `again`: goes on in a log that is there. */
export function openOutputLog(path: string, options: OutputLogOptions | 'again'): OutputLog {
  const secrets = (options !== 'again' && options.secrets) || [];
  const filters = { stdout: createSecretFilter(secrets), stderr: createSecretFilter(secrets) };
  let failure: string | undefined;
  let file: LogFile | undefined;
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
    file = options === 'again' ? reopenLogFile(path) : createLogFile(path, options.limitBytes);
  });
  const write = (stream: OutputStream, bytes: Uint8Array): void => {
    if (!file || failure !== undefined || bytes.length === 0) return;
    const prefix = PREFIX[stream];
    const breaks = !atLineStart && owner !== stream ? '\n' : '';
    const leads = atLineStart || breaks !== '';
    owner = stream;
    atLineStart = bytes.at(-1) === NEWLINE;
    // Latin-1 keeps every byte as one character, and strings are searched and joined faster than buffers.
    const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const text = whole.toString('latin1', 0, bytes.length - (atLineStart ? 1 : 0));
    const body = text.replaceAll('\n', `\n${prefix}`);
    const line = `${breaks}${leads ? prefix : ''}${body}${atLineStart ? '\n' : ''}`;
    attempt(() => file!.append(Buffer.from(line, 'latin1')));
  };
  return {
    write: (stream, chunk) => write(stream, filters[stream].take(chunk)),
    close() {
      for (const stream of ['stdout', 'stderr'] as const) write(stream, filters[stream].rest());
      if (file) attempt(() => file!.close());
      file = undefined;
    },
    failure: () => failure,
  };
}
