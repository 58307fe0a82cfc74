/** How a command-line tool takes its options: getopt's way, or with `argparse` Python's. */
export interface OptionTable {
  /** Spellings of each option joined by `|` (`-n|--adjustment`); the last one names it. Without a value. */
  readonly flags: readonly string[];
  /** With a value: `--name value`, `--name=value`, `-nvalue`. */
  readonly values: readonly string[];
  /** With a value only in the form `--name=value`. */
  readonly optional?: readonly string[];
  /** Words that end the options though they look like some, and are left where they are. */
  readonly stops?: readonly string[];
  /** `argparse`: `_` and `-` are the same in a long name. `argparse-abbreviated`: its unique beginnings are understood, too. */
  readonly style?: 'getopt' | 'argparse' | 'argparse-abbreviated';
}

/** One option as typed. */
export interface SeenOption {
  /** As the table names it. */
  readonly name: string;
  readonly value: string | undefined;
  /** Token of the option. */
  readonly index: number;
  /** Token that holds the value, and what stands before it there (`--name=`, `-n`, nothing). */
  readonly valueIndex: number;
  readonly before: string;
}

export interface OptionScan {
  readonly options: readonly SeenOption[];
  /** First token that is no option: the operand, or argv.length. */
  readonly next: number;
  /** An option that the table does not know, or one whose value is missing; scanning stopped there. */
  readonly stuck?: { readonly index: number; readonly why: 'unknown' | 'ambiguous' | 'no-value' };
}

type Takes = 'flag' | 'value' | 'optional';

/** Reads the options from `argv[from]` up to the first operand; `--` ends them and is skipped. */
export function scanOptions(argv: readonly string[], from: number, table: OptionTable): OptionScan {
  const spellings = spellingsOf(table);
  const options: SeenOption[] = [];
  let at = from;
  while (at < argv.length) {
    const token = argv[at]!;
    if (token === '--') return { options, next: at + 1 };
    if (!token.startsWith('-') || (token === '-' && !spellings.has('-'))) break;
    // A letter may have its value in the same word (`-mmodule`).
    if (table.stops?.some((word) => token.startsWith(word.length === 2 ? word : `${word}=`) || token === word)) break;
    const read = token.startsWith('--') ? readLong(argv, at, table, spellings) : readShort(argv, at, table, spellings);
    if (typeof read === 'string') return { options, next: at, stuck: { index: at, why: read } };
    options.push(...read.options);
    at = read.next;
  }
  return { options, next: at };
}

/** The last value of an option: later ones win everywhere. */
export const lastOption = (scan: OptionScan, name: string): SeenOption | undefined =>
  scan.options.findLast((option) => option.name === name);

type Spellings = ReadonlyMap<string, { readonly name: string; readonly takes: Takes }>;

function spellingsOf(table: OptionTable): Spellings {
  const spellings = new Map<string, { name: string; takes: Takes }>();
  const add = (groups: readonly string[], takes: Takes): void => {
    for (const group of groups) {
      const words = group.split('|');
      for (const word of words) spellings.set(normal(word, table), { name: words.at(-1)!, takes });
    }
  };
  add(table.flags, 'flag');
  add(table.values, 'value');
  add(table.optional ?? [], 'optional');
  return spellings;
}

const normal = (spelling: string, { style }: OptionTable): string =>
  style !== undefined && style !== 'getopt' && spelling.startsWith('--')
    ? `--${spelling.slice(2).replaceAll('_', '-')}`
    : spelling;

type Read = { options: SeenOption[]; next: number } | NonNullable<OptionScan['stuck']>['why'];

function readLong(argv: readonly string[], at: number, table: OptionTable, spellings: Spellings): Read {
  const token = argv[at]!;
  const equals = token.indexOf('=');
  const found = findLong(normal(equals < 0 ? token : token.slice(0, equals), table), table, spellings);
  if (typeof found === 'string') return found;
  const { name, takes } = found;
  if (equals >= 0) {
    if (takes === 'flag') return 'unknown';
    const before = token.slice(0, equals + 1);
    return { options: [{ name, value: token.slice(equals + 1), index: at, valueIndex: at, before }], next: at + 1 };
  }
  return takes === 'value' ? withNextToken(argv, at, name, table) : withoutValue(at, name);
}

function findLong(
  spelling: string,
  table: OptionTable,
  spellings: Spellings,
): { name: string; takes: Takes } | 'unknown' | 'ambiguous' {
  const exact = spellings.get(spelling);
  if (exact) return exact;
  if (table.style !== 'argparse-abbreviated') return 'unknown';
  const candidates = new Map(
    [...spellings].filter(([word]) => word.startsWith(spelling)).map(([, option]) => [option.name, option]),
  );
  const [only] = candidates.values();
  return candidates.size > 1 ? 'ambiguous' : (only ?? 'unknown');
}

/** `-u`, `-n5`, `-n 5`, `-iu NAME`: letters one after the other, the first that takes a value has the rest. */
function readShort(argv: readonly string[], at: number, table: OptionTable, spellings: Spellings): Read {
  const token = argv[at]!;
  const whole = spellings.get(token);
  if (whole) return whole.takes === 'value' ? withNextToken(argv, at, whole.name, table) : withoutValue(at, whole.name);
  const options: SeenOption[] = [];
  for (let letter = 1; letter < token.length; letter += 1) {
    const option = spellings.get(`-${token[letter]}`);
    if (!option) return 'unknown';
    const rest = token.slice(letter + 1);
    if (option.takes === 'flag' || (option.takes === 'optional' && rest === '')) {
      options.push({ name: option.name, value: undefined, index: at, valueIndex: at, before: '' });
      continue;
    }
    if (rest === '') {
      const read = withNextToken(argv, at, option.name, table);
      return typeof read === 'string' ? read : { options: [...options, ...read.options], next: read.next };
    }
    options.push({ name: option.name, value: rest, index: at, valueIndex: at, before: token.slice(0, letter + 1) });
    return { options, next: at + 1 };
  }
  return { options, next: at + 1 };
}

function withNextToken(argv: readonly string[], at: number, name: string, { style }: OptionTable): Read {
  const value = argv[at + 1];
  // argparse takes nothing that looks like an option for a value, but for negative numbers; getopt takes anything.
  const isOption = value !== undefined && /^-[^\d.]/.test(value) && !value.includes(' ');
  if (value === undefined || (isOption && style !== undefined && style !== 'getopt')) return 'no-value';
  return { options: [{ name, value, index: at, valueIndex: at + 1, before: '' }], next: at + 2 };
}

const withoutValue = (at: number, name: string): Read => ({
  options: [{ name, value: undefined, index: at, valueIndex: at, before: '' }],
  next: at + 1,
});

/** Name of a program whatever its folder: `/usr/bin/env` is `env`, `python.exe` is `python`. */
export const programName = (token: string): string => token.replace(/^.*[/\\]/, '').replace(/\.exe$/i, '');
