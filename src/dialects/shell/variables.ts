import type { ShellWord, WordPart } from './lexer.ts';
import { lexShell } from './lexer.ts';

/** null: set, but to what cannot be known without running something. */
export type Value = string | readonly string[] | null;

/** Shell variables at one place of a script, over the environment of whoever starts it. */
export class Variables {
  private readonly values: Map<string, Value | undefined>;
  private readonly environment: Readonly<Record<string, string | undefined>>;
  /** `$1`, `$2`, …. */
  positional: readonly string[];

  constructor(environment: Readonly<Record<string, string | undefined>>, positional: readonly string[]) {
    this.environment = environment;
    this.positional = positional;
    this.values = new Map();
  }

  /** undefined: not set. */
  get(name: string): Value | undefined {
    return this.values.has(name) ? this.values.get(name) : this.environment[name];
  }

  set(name: string, value: Value | undefined): void {
    this.values.set(name, value);
  }

  /** What the script itself has set so far. */
  snapshot(): ReadonlyMap<string, Value | undefined> {
    return new Map(this.values);
  }

  restore(snapshot: ReadonlyMap<string, Value | undefined>): void {
    this.values.clear();
    for (const [name, value] of snapshot) this.values.set(name, value);
  }

  names(): readonly string[] {
    return [...this.values.keys()];
  }
}

/** One word of a command after expansion. `known` false: text of it is as it stands in the script. */
export interface Field {
  readonly text: string;
  readonly known: boolean;
}

/** What a part gives: fields that are joined to their neighbours, split where an unquoted value holds blanks. */
type Piece = { readonly fields: readonly Field[]; readonly splits: boolean };

/** The words a shell would make of one word of its text: none, one or several. Nothing is executed. */
export function expandWord(word: ShellWord, variables: Variables): readonly Field[] {
  let fields: Field[] = [];
  let open: Field | undefined;
  const quoted = word.parts.some((part) => part.quoted);
  for (const part of word.parts) {
    const { fields: made, splits } = expandPart(part, variables);
    if (made.length === 0) continue;
    const [first, ...rest] = made;
    open = open ? { text: open.text + first!.text, known: open.known && first!.known } : first!;
    if (splits && rest.length > 0) {
      fields = [...fields, open, ...rest.slice(0, -1)];
      open = rest.at(-1);
    }
  }
  if (open === undefined) return quoted && !onlyList(word) ? [{ text: '', known: true }] : [];
  return [...fields, open];
}

/** `"$@"` of nothing is no word at all. */
const onlyList = (word: ShellWord): boolean =>
  word.parts.every((part) => part.kind === 'variable' && /^(?:@|\w+\[@\])$/.test(part.inside));

/** One text, as in an assignment: no splitting. null: not all of it is known. */
export function expandText(word: ShellWord, variables: Variables): string | null {
  const pieces = word.parts.map((part) => expandPart({ ...part, quoted: true }, variables));
  if (pieces.some(({ fields }) => fields.some(({ known }) => !known))) return null;
  return pieces.map(({ fields }) => fields.map(({ text }) => text).join(' ')).join('');
}

function expandPart(part: WordPart, variables: Variables): Piece {
  switch (part.kind) {
    case 'text':
      return { fields: [{ text: part.text, known: true }], splits: false };
    case 'command':
      return unknown(part.raw);
    case 'arithmetic': {
      const value = arithmetic(part.inside, variables);
      return value === undefined ? unknown(part.raw) : one(String(value));
    }
    case 'variable':
      return expandVariable(part, variables);
  }
}

const unknown = (raw: string): Piece => ({ fields: [{ text: raw, known: false }], splits: false });
const one = (text: string): Piece => ({ fields: [{ text, known: true }], splits: false });
const NOTHING: Piece = { fields: [], splits: false };

function expandVariable(part: Extract<WordPart, { kind: 'variable' }>, variables: Variables): Piece {
  const { inside, raw, quoted } = part;
  if (inside === '@' || inside === '*') return list(variables.positional, inside === '@', quoted);
  if (inside === '#') return one(String(variables.positional.length));
  const match = /^(#?)([A-Za-z_]\w*|[0-9]+)(?:\[([^\]]*)\])?(?:(:?[-=?+])([\s\S]*)|([%#/^,:@][\s\S]*))?$/.exec(inside);
  if (!match) return unknown(raw);
  const [, length, name = '', index, operator, argument = '', other] = match;
  const value = /^\d+$/.test(name) ? variables.positional[Number(name) - 1] : variables.get(name);
  if (length) return value === undefined || value === null ? unknown(raw) : one(String(sizeOf(value, index)));
  if (other !== undefined) return value === undefined ? NOTHING : unknown(raw);
  const chosen = index === '@' || index === '*' ? value : elementOf(value, index);
  if (operator !== undefined) return withDefault(chosen, operator, argument, { name, raw, quoted }, variables);
  return show(chosen, { name, raw, quoted, all: index === '@' || index === '*' });
}

interface Place {
  readonly name: string;
  readonly raw: string;
  readonly quoted: boolean;
}

function show(value: Value | undefined, { name, raw, quoted, all = false }: Place & { readonly all?: boolean }): Piece {
  // Nobody has set it: the shell leaves it out, unless Slurm will set it for the job.
  if (value === undefined)
    return /^SLURM_|^(?:RANK|LOCAL_RANK|WORLD_SIZE|HOSTNAME|PBS_\w+)$/.test(name) ? unknown(raw) : NOTHING;
  if (value === null) return unknown(raw);
  if (typeof value !== 'string') return list(all ? value : value.slice(0, 1), true, quoted);
  return quoted ? one(value) : split(value);
}

function withDefault(
  value: Value | undefined,
  operator: string,
  argument: string,
  place: Place,
  variables: Variables,
): Piece {
  const missing = value === undefined || (operator.startsWith(':') && value === '');
  if (value === null) return unknown(place.raw);
  const otherwise = (): Piece => {
    const token = lexShell(`"${argument.replace(/^(["'])([\s\S]*)\1$/, '$2')}"`)[0];
    const text = token?.kind === 'word' ? expandText(token, variables) : '';
    if (text === null) return unknown(place.raw);
    if (operator.endsWith('=')) variables.set(place.name, text);
    return place.quoted ? one(text) : split(text);
  };
  if (operator.endsWith('+')) return missing ? NOTHING : otherwise();
  if (!missing) return show(value, place);
  // `${X:?message}` ends the script; what X will be, only its user knows.
  return operator.endsWith('?') ? unknown(place.raw) : otherwise();
}

const sizeOf = (value: string | readonly string[], index: string | undefined): number =>
  index === '@' || index === '*' ? (typeof value === 'string' ? 1 : value.length) : String(value).length;

function elementOf(value: Value | undefined, index: string | undefined): Value | undefined {
  if (index === undefined || value === null || value === undefined) return value;
  if (!/^\d+$/.test(index)) return null;
  return typeof value === 'string' ? (index === '0' ? value : undefined) : value[Number(index)];
}

function list(values: readonly string[], separate: boolean, quoted: boolean): Piece {
  if (!quoted) return split(values.join(' '));
  if (!separate) return one(values.join(' '));
  return { fields: values.map((text) => ({ text, known: true })), splits: true };
}

function split(text: string): Piece {
  const fields = text.split(/\s+/).filter((word) => word !== '');
  return { fields: fields.map((word) => ({ text: word, known: true })), splits: true };
}

/** `$((…))` of whole numbers, + − × ÷ % and brackets; undefined: something else is in it. */
export function arithmetic(text: string, variables: Variables): number | undefined {
  const filled = text.replace(/\$?\{?\b([A-Za-z_]\w*)\b\}?/g, (whole, name: string) => {
    const value = variables.get(name);
    return typeof value === 'string' && /^\s*-?\d+\s*$/.test(value) ? value : whole;
  });
  const tokens = filled.match(/\d+|[-+*/%()]|\S/g) ?? [];
  let at = 0;
  const primary = (): number => {
    const token = tokens[at];
    at += 1;
    if (token === '-') return -primary();
    if (token === '(') {
      const inner = sum();
      at += 1;
      return inner;
    }
    return token !== undefined && /^\d+$/.test(token) ? Number(token) : Number.NaN;
  };
  const product = (): number => {
    let value = primary();
    for (; tokens[at] === '*' || tokens[at] === '/' || tokens[at] === '%'; ) {
      const operator = tokens[at];
      at += 1;
      const right = primary();
      value = operator === '*' ? value * right : operator === '/' ? Math.trunc(value / right) : value % right;
    }
    return value;
  };
  const sum = (): number => {
    let value = product();
    for (; tokens[at] === '+' || tokens[at] === '-'; ) {
      const operator = tokens[at];
      at += 1;
      const right = product();
      value = operator === '+' ? value + right : value - right;
    }
    return value;
  };
  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : undefined;
}
