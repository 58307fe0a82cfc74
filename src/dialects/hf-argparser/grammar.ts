/**
 * How an option takes its values, as HfArgumentParser declares it: `value` exactly one (an Optional[bool] too), `bool`
 * none or one, `list` one or more. Source: transformers/hf_argparser.py `_parse_dataclass_field`.
 */
export type FieldKind = 'value' | 'bool' | 'list';

export interface Grammar {
  readonly fields: ReadonlyMap<string, FieldKind>;
  /** Booleans that are true by default and so have a `--no_x` form. */
  readonly negatable: ReadonlySet<string>;
  /** The script may declare flags of its own: an unknown spelling is theirs, not an error. */
  readonly open: boolean;
  /** Whether the script declares this spelling itself, so that it is no abbreviation of a known one. */
  readonly declares?: (spelling: string) => boolean;
}

/** One option as typed. */
export interface Flag {
  /** The field's name, or for an unknown option its spelling with `_`. */
  readonly key: string;
  readonly known: boolean;
  /** `--max-length`, as typed, without a value. */
  readonly spelling: string;
  readonly index: number;
  /** `bare`: no value follows. */
  readonly style: 'bare' | 'space' | 'equals';
  /** Typed as `--no_x`. */
  readonly negated: boolean;
  readonly values: readonly { readonly text: string; readonly index: number }[];
  /** First token after the option and its values. */
  readonly end: number;
}

export interface ParsedFlags {
  readonly flags: readonly Flag[];
  readonly positionals: readonly { readonly text: string; readonly index: number }[];
  /** Options the parser would stop at: the spelling fits several fields, or the value is missing. */
  readonly problems: readonly { readonly index: number; readonly message: string; readonly help: string }[];
}

export interface Token {
  readonly text: string;
  readonly index: number;
}

/** Splits script arguments the way argparse with HfArgumentParser's fields does; the last of equal options wins there. */
export function parseFlags(tokens: readonly Token[], grammar: Grammar): ParsedFlags {
  const flags: Flag[] = [];
  const positionals: Token[] = [];
  const problems: { index: number; message: string; help: string }[] = [];
  for (let at = 0; at < tokens.length; ) {
    const token = tokens[at]!;
    if (!isOption(token.text)) {
      positionals.push(token);
      at += 1;
      continue;
    }
    const equals = token.text.indexOf('=');
    const spelling = equals < 0 ? token.text : token.text.slice(0, equals);
    const match = resolve(spelling, grammar);
    if (match.kind === 'ambiguous') {
      problems.push({
        index: token.index,
        message: `${spelling} could be ${match.candidates.join(' or ')}`,
        help: 'write the option out in full',
      });
    }
    const known = match.kind === 'field';
    const key = known ? match.key : unknownKey(spelling, grammar);
    const negated = known && match.negated;
    const follow = negated ? 0 : known ? LIMIT[grammar.fields.get(key)!] : Number.POSITIVE_INFINITY;
    const values: Token[] = [];
    if (equals >= 0) {
      values.push({ text: token.text.slice(equals + 1), index: token.index });
    } else {
      for (let next = at + 1; next < tokens.length && values.length < follow; next += 1) {
        if (isOption(tokens[next]!.text)) break;
        values.push(tokens[next]!);
      }
    }
    if (known && !negated && values.length === 0 && grammar.fields.get(key) !== 'bool') {
      problems.push({
        index: token.index,
        message: `${spelling} needs a value`,
        help: `write ${spelling} VALUE`,
      });
    }
    at += equals >= 0 ? 1 : 1 + values.length;
    flags.push({
      key,
      known,
      spelling,
      index: token.index,
      style: equals >= 0 ? 'equals' : values.length > 0 ? 'space' : 'bare',
      negated,
      values,
      end: (equals >= 0 ? token.index : (values.at(-1)?.index ?? token.index)) + 1,
    });
  }
  return { flags, positionals, problems };
}

const LIMIT: Readonly<Record<FieldKind, number>> = { value: 1, bool: 1, list: Number.POSITIVE_INFINITY };

/** argparse takes `-5` and `-1e-4`-less negative numbers, and anything with a blank inside, for a value. */
function isOption(text: string): boolean {
  if (!text.startsWith('-') || text === '-') return false;
  if (/^-(?:\d+|\d*\.\d+)$/.test(text)) return false;
  const space = text.indexOf(' ');
  const equals = text.indexOf('=');
  return space < 0 || (equals >= 0 && equals < space);
}

/** An unknown option by its name, but never under the name of a field that it is not (`--max-seq_length`). */
function unknownKey(spelling: string, grammar: Grammar): string {
  const key = asKey(spelling);
  return grammar.fields.has(key) ? spelling.replace(/^-+/, '') : key;
}

const asKey = (spelling: string): string => spelling.replace(/^-+/, '').replaceAll('-', '_');

type Match =
  | { kind: 'field'; key: string; negated: boolean }
  | { kind: 'unknown' }
  | { kind: 'ambiguous'; candidates: string[] };

/** Each field has two spellings, all `_` or all `-`; a beginning that fits one field only is that field. */
function resolve(spelling: string, grammar: Grammar): Match {
  if (!spelling.startsWith('--')) return { kind: 'unknown' };
  const name = spelling.slice(2);
  const exact = exactField(name, grammar);
  if (exact) return exact;
  if (name.length < 2 || grammar.declares?.(asKey(spelling))) return { kind: 'unknown' };
  const found = new Map<string, boolean>();
  for (const key of grammar.fields.keys()) {
    if (key.startsWith(name) || key.replaceAll('_', '-').startsWith(name)) found.set(key, false);
    if (
      grammar.negatable.has(key) &&
      (`no_${key}`.startsWith(name) || `no-${key.replaceAll('_', '-')}`.startsWith(name))
    ) {
      found.set(key, true);
    }
  }
  if (found.size === 1) {
    const [[key, negated]] = [...found] as [[string, boolean]];
    return { kind: 'field', key, negated };
  }
  if (found.size === 0 || grammar.open) return { kind: 'unknown' };
  return { kind: 'ambiguous', candidates: [...found.keys()].slice(0, 3).map((key) => `--${key}`) };
}

function exactField(name: string, grammar: Grammar): Match | undefined {
  const key = name.includes('_') ? name : name.replaceAll('-', '_');
  if (name.includes('_') && name.includes('-')) return undefined;
  if (grammar.fields.has(key)) return { kind: 'field', key, negated: false };
  const positive = key.replace(/^no_/, '');
  return positive !== key && grammar.negatable.has(positive)
    ? { kind: 'field', key: positive, negated: true }
    : undefined;
}
