import type { OutputStream } from '../diagnosis/index.ts';
import { createLineLeads } from './line-leads.ts';
import { createLogFile, type LogFile, reopenLogFile } from './log-file.ts';
import { createSecretFilter } from './secret-filter.ts';

const LEAD: Readonly<Record<OutputStream, Buffer>> = { stdout: Buffer.from('out| '), stderr: Buffer.from('err| ') };
const STREAMS = ['stdout', 'stderr'] as const;
const NEWLINE = 0x0a;
const LINE_BREAK = Buffer.from([NEWLINE]);

/**
 * Writes `output.log`: the bytes of both streams in the order they came, each line led by `out| ` or `err| `. A change of
 * stream inside a line starts a new one; `\r` and escapes stay as they are. Line numbers of the evidence are those of this file.
 * Written at once, so that nothing is lost when we are killed; a full disk ends the log, not the run.
 */
export interface OutputLog {
  /** Returns how many lines end in `chunk`, where writing has told. The chunk may be overwritten afterwards. */
  readonly write: (stream: OutputStream, chunk: Buffer) => number | undefined;
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
  const leads = createLineLeads();

  const attempt = (action: () => void): void => {
    try {
      action();
    } catch (thrown) {
      failure = (thrown as NodeJS.ErrnoException).code ?? 'unknown';
    }
  };
  attempt(() => {
    if (options !== 'again') {
      file = createLogFile(path, options.limitBytes);
      return;
    }
    const reopened = reopenLogFile(path);
    file = reopened.file;
    // A line that was cut in two is one line all the same.
    const { unfinished } = reopened;
    owner = unfinished && STREAMS.find((stream) => unfinished.subarray(0, LEAD[stream].length).equals(LEAD[stream]));
    atLineStart = unfinished === undefined;
  });
  const write = (stream: OutputStream, bytes: Buffer): number | undefined => {
    if (!file || failure !== undefined || bytes.length === 0) return undefined;
    let lines: number | undefined;
    const changed = !atLineStart && owner !== stream;
    const leadFirst = atLineStart || changed;
    owner = stream;
    atLineStart = bytes.at(-1) === NEWLINE;
    attempt(() => {
      if (changed) file!.append(LINE_BREAK);
      lines = leads.add(bytes, LEAD[stream], leadFirst, file!.append);
    });
    return lines;
  };
  return {
    write(stream, chunk) {
      const bytes = filters[stream].take(chunk);
      const lines = write(stream, bytes);
      return bytes === chunk ? lines : undefined;
    },
    close() {
      for (const stream of STREAMS) write(stream, filters[stream].rest());
      if (file) attempt(() => file!.close());
      file = undefined;
    },
    failure: () => failure,
  };
}
