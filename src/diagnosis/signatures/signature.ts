import type { AllocatorReport } from '../allocator-report.ts';
import type { FailureKind, Resource } from '../failure.ts';
import type { CleanLine } from '../normalise.ts';

/**
 * What a matched line means for the run:
 * `cause` ends it; `possible` may mean something else as well; `killed` tells of a signal 9 without saying whose;
 * `other` ends it and is not memory; `echo` follows from something earlier; `recovered` was handled by the trainer;
 * `crash` is any other exception.
 */
export type Role = 'cause' | 'possible' | 'killed' | 'other' | 'echo' | 'recovered' | 'crash';

/** One text that tools print, and what it stands for. A new one is one more record in its family's file. */
export interface Signature {
  /** kebab-case, stable: written to `outcome.json`. */
  readonly id: string;
  readonly role: Role;
  readonly kind: FailureKind;
  readonly resource: Resource;
  /**
   * `exception`: counts where an exception's own line stands. `line`: counts anywhere but inside a quotation, and indented only
   * with doubt. `anywhere`: as `line`, and its tools indent it. `field`: a field of a tool's own JSON, where the line begins.
   */
  readonly place: 'exception' | 'line' | 'anywhere' | 'field';
  readonly pattern: RegExp;
  /** Words of which one is in every matching line; they make the first, cheap test. */
  readonly hints: readonly string[];
  /** The same, seven letters or longer, to find such lines in a huge log by; absent: the hints are long enough. */
  readonly skim?: readonly string[];
  readonly confidence?: 'high' | 'medium' | 'low';
  /** Other readings of the same text, likeliest first. */
  readonly candidates?: readonly FailureKind[];
  /** Reads the numbers of the message (with its continuation lines). */
  readonly read?: (message: string) => AllocatorReport;
  /** The message goes on over the next lines, as this allocator prints it. */
  readonly rows?: boolean;
}

/** How a matched text stands in its line. */
export type Standing = 'sure' | 'weak' | 'quoted';

const EXCEPTION_HEAD =
  /^(?:(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|Exit|OutOfResources|Failure|Exited)(?:\([\w., ]*\))?(?::|$)|(?:[a-z_]\w*\.)+[A-Z]\w*(?::|$)|\s*what\(\):\s|terminate called after throwing)/;
const BARE_ERROR = /(?:error|exception|failed|failure|fatal|oom)\b[^"'`]{0,80}[:\]-]\s*$/i;
const CLASS_AT_END = /(?<=\s)(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)(?:\([\w., ]*\))?:\s*$/;
const QUOTING_START = /^\s*(?:["'`>|{]|[-*#]\s|\/\/)/;

/** The exception's class and punctuation at the start of the line; undefined when it is no exception's own line. */
export const exceptionHead = (text: string): string | undefined => EXCEPTION_HEAD.exec(text)?.[0];

const oddQuotes = (text: string): boolean => (text.match(/"/g)?.length ?? 0) % 2 === 1;

/**
 * A word alone proves nothing: the same words stand in help texts, data sets and tables of samples. An exception's message
 * begins right after its class; any other place is doubtful or a quotation.
 */
export function standingOf({ place, role }: Signature, line: CleanLine, index: number): Standing {
  const before = line.text.slice(0, index);
  if (place === 'field') return line.boxed ? 'quoted' : 'sure';
  if (line.boxed || QUOTING_START.test(line.text) || oddQuotes(before)) return 'quoted';
  if (place === 'anywhere') return 'sure';
  if (place === 'line') return line.indented && role === 'cause' ? 'weak' : 'sure';
  const trimmed = line.text.trimStart();
  const head = exceptionHead(trimmed);
  const lead = line.text.length - trimmed.length;
  if (head !== undefined && index <= lead + head.length + 120) {
    const between = index <= lead + head.length ? '' : line.text.slice(lead + head.length, index);
    if (!head.startsWith('terminate') && /["`]|(?:^|\s)'/.test(between)) return 'quoted';
    return line.indented && !/^what\(\)/.test(trimmed) ? 'weak' : line.level === 'warning' ? 'weak' : 'sure';
  }
  // A class in the middle of a line is no error word of the line's own.
  const told = before.replace(CLASS_AT_END, '');
  return before.trim() === '' || BARE_ERROR.test(told) ? 'weak' : 'quoted';
}
