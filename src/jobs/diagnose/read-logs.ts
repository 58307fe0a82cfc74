import { type Diagnostic, error } from '../../core/index.ts';
import { createLogReader, type Evidence, joinEvidence, type LogReading } from '../../diagnosis/index.ts';
import type { DiagnosisNote } from '../../report/index.ts';
import { whyUnreadable } from '../why-unreadable.ts';
import type { LogGroup } from './log-groups.ts';

/** A log that was opened, or the errno name of why not. */
export type OpenedLog =
  | {
      readonly ok: true;
      readonly chunks: AsyncIterable<Uint8Array>;
      /** After the last piece: a compressed file ended early. */
      readonly cutArchive: () => boolean;
    }
  | { readonly ok: false; readonly code: string };

/** Opens a log by its path, `-` for stdin; gzip is unpacked on the way. */
export type OpenLog = (path: string) => Promise<OpenedLog>;

/** What the logs of one run say. */
export interface GroupReading {
  readonly files: readonly string[];
  readonly evidence: Evidence | undefined;
  readonly lines: number;
  readonly notes: readonly DiagnosisNote[];
  readonly problems: readonly Diagnostic[];
}

const unreadable = (path: string, reason: string): Diagnostic =>
  error('unreadable-log', `cannot read ${path}: ${reason}`, {
    location: path,
    help: 'give a text log (also gzip, UTF-16 or a notebook), or - and pipe it in: kubectl logs POD | snug diagnose -',
  });

const shownName = (path: string): string => (path === '-' ? 'stdin' : path);

async function readOne(open: OpenLog, path: string): Promise<(LogReading & { cutArchive: boolean }) | Diagnostic> {
  const opened = await open(path);
  const name = shownName(path);
  if (!opened.ok) return unreadable(name, whyUnreadable(opened.code));
  const reader = createLogReader();
  for await (const chunk of opened.chunks) reader.push(chunk);
  const reading = reader.end();
  if (reading.binary !== undefined) return unreadable(name, `it is ${reading.binary}`);
  return { ...reading, cutArchive: opened.cutArchive() };
}

const SMALL = 8 * 1024 ** 2;

/** A text that is small by nature, whole. */
export async function readSmallText(open: OpenLog, path: string): Promise<string | Diagnostic> {
  const opened = await open(path);
  if (!opened.ok) return unreadable(shownName(path), whyUnreadable(opened.code));
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of opened.chunks) {
    if (text.length < SMALL) text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

/** Reads every log of one run and joins what they say. */
export async function readGroup(open: OpenLog, { files }: LogGroup): Promise<GroupReading> {
  const notes: DiagnosisNote[] = [];
  const problems: Diagnostic[] = [];
  const parts: { source: string; rank: number | undefined; evidence: Evidence }[] = [];
  let lines = 0;
  for (const { path, rank } of files) {
    const reading = await readOne(open, path);
    const file = shownName(path);
    if ('code' in reading) {
      problems.push(reading);
      continue;
    }
    lines += reading.lines;
    if (reading.bytes === 0) notes.push({ id: 'empty', values: { file } });
    else if (reading.cutArchive) notes.push({ id: 'cut-archive', values: { file } });
    parts.push({ source: file, rank, evidence: reading.evidence });
  }
  const evidence = parts.length > 0 ? joinEvidence(parts) : undefined;
  return { files: files.map(({ path }) => shownName(path)), evidence, lines, notes, problems };
}
