import { cleanControls } from './normalise.ts';

/** Where loggers keep what was said. */
const SAID = ['message', 'msg', 'log', 'MESSAGE', 'event', 'textPayload'];
/** So are columns of data called: they count only beside a level. */
const SAID_WITH_LEVEL = ['text', 'body'];
const LEVELS = ['level', 'levelname', 'severity', 'lvl', 'log_level', 'PRIORITY'];
/** Where they keep a traceback. */
const TRACED = ['exc_info', 'exc_text', 'exception', 'stack_trace', 'traceback', 'stack', 'error'];
/** What a record of a log has and a row of data has not. */
const STAMPS = [...LEVELS, 'stream', 'time', 'timestamp', 'ts', '@timestamp', 'asctime', '__REALTIME_TIMESTAMP'];

const textsAt = (record: Readonly<Record<string, unknown>>, keys: readonly string[]): readonly string[] =>
  keys.flatMap((key) => (typeof record[key] === 'string' && record[key] !== '' ? [record[key]] : []));

/**
 * The lines inside one JSON record of a log (a container runtime's, structlog's, journald's, a cloud's): what was said, then the
 * traceback. Undefined: it is no such record; any other JSON is data and says nothing of the run.
 */
export function linesOfRecord(text: string): readonly string[] | undefined {
  if (!text.startsWith('{"') || !text.endsWith('}')) return undefined;
  let record: Readonly<Record<string, unknown>>;
  try {
    record = JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
  if (!STAMPS.some((key) => key in record)) return undefined;
  const inner = record.jsonPayload;
  const holder = typeof inner === 'object' && inner !== null ? (inner as Readonly<Record<string, unknown>>) : record;
  const leveled = LEVELS.some((key) => key in record);
  const said = textsAt(holder, leveled ? [...SAID, ...SAID_WITH_LEVEL] : SAID).slice(0, 1);
  if (said.length === 0 && !leveled) return undefined;
  // `stream` is also a column's name; a runtime has one of two.
  if ('stream' in record && record.stream !== 'stdout' && record.stream !== 'stderr') return undefined;
  const lines = [...said, ...textsAt(holder, TRACED)].flatMap((part) => part.split(/\r?\n|\r/));
  return lines.length > 0 ? lines.map(cleanControls).filter((line) => line.trim() !== '') : undefined;
}
