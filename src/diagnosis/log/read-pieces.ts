import type { Evidence } from '../evidence.ts';
import { evidenceOf } from '../read-log.ts';
import { createLineWatcher } from '../watch.ts';
import { notebookText } from './notebook.ts';
import { createSkimmer } from './skim.ts';
import { type LogForm, sniffLog } from './sniff.ts';

/** A log that was read to its end. */
export interface LogReading {
  readonly evidence: Evidence;
  readonly bytes: number;
  readonly lines: number;
  /** Why it is no log, for people; undefined: it is text. */
  readonly binary: string | undefined;
  /** Its last line has no end. */
  readonly cutOff: boolean;
}

/** Reads a log piece by piece, whatever it is written in. */
export interface LogReader {
  readonly push: (chunk: Uint8Array) => void;
  readonly end: () => LogReading;
}

const SNIFFED = 4096;
const NOTEBOOK_LIMIT = 256 * 1024 ** 2;

/** A reader for one file: plain text in UTF-8 or UTF-16, or a notebook, whose outputs are the log. */
export function createLogReader(): LogReader {
  const watcher = createLineWatcher();
  const skimmer = createSkimmer(watcher);
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  let form: LogForm | undefined;
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  let json = '';
  let last: number | undefined;
  const encoder = new TextEncoder();

  const take = (text: Uint8Array): void => {
    if (text.length === 0) return;
    last = text[text.length - 1];
    skimmer.push(text);
  };
  const accept = (chunk: Uint8Array, final: boolean): void => {
    if (!form || form.form === 'binary') return;
    if (form.form === 'text') {
      take(chunk);
      return;
    }
    decoder ??= new TextDecoder(form.form === 'json' ? 'utf-8' : form.form);
    const text = decoder.decode(chunk, { stream: !final });
    if (form.form !== 'json') {
      take(encoder.encode(text));
      return;
    }
    json += text;
    if (json.length > NOTEBOOK_LIMIT) form = { form: 'binary', what: 'a notebook too large to be read' };
  };
  const begin = (): void => {
    const whole = Buffer.concat(waiting);
    waiting = [];
    form = sniffLog(whole.subarray(0, SNIFFED));
    accept(whole, false);
  };

  return {
    push(chunk) {
      bytes += chunk.length;
      if (form) {
        accept(chunk, false);
        return;
      }
      waiting.push(chunk.slice());
      if (bytes >= SNIFFED) begin();
    },
    end() {
      if (!form) begin();
      accept(new Uint8Array(0), true);
      if (form?.form === 'json') take(encoder.encode(notebookText(json) ?? json));
      skimmer.end();
      watcher.end();
      return {
        evidence: evidenceOf(watcher.evidence()),
        bytes,
        lines: watcher.linesSeen(),
        binary: form?.form === 'binary' ? form.what : undefined,
        cutOff: last !== undefined && last !== 0x0a && last !== 0x0d && form?.form !== 'json',
      };
    },
  };
}
