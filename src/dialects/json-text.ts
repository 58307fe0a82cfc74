import { type Diagnostic, error, fail, ok, type Result } from '../core/index.ts';
import type { EditText, FileValue } from './dialect.ts';

/** A JSON value with the range of text it stands in, `[start, end)`. */
export interface JsonNode {
  readonly value: FileValue;
  readonly start: number;
  readonly end: number;
  /** Objects only, in order; of a key that stands twice both. */
  readonly members?: readonly { readonly key: string; readonly keyStart: number; readonly node: JsonNode }[];
}

const MAX_DEPTH = 100;
const MAX_EXCERPT = 160;

/** Parses JSON and keeps the places; the one diagnostic names line and column. `path` is how messages name the file. */
export function parseJson(text: string, path: string): Result<JsonNode> {
  const scanner = new Scanner(text);
  try {
    scanner.blank();
    const node = scanner.value(0);
    scanner.blank();
    if (scanner.at < text.length) scanner.stop('text after the end of the value');
    return ok(node);
  } catch (cause) {
    if (cause instanceof Stop) return fail(jsonProblem(text, path, cause));
    throw cause;
  }
}

/** Sets values in JSON text by ranges; a new key goes to the end of its object, on a line of its own where the others do. */
export const editJson: EditText = (text, edits) => {
  let current = text;
  for (const { keyPath, value } of edits) {
    const parsed = parseJson(current, 'the file');
    if (!parsed.ok) return parsed;
    current = setIn(current, parsed.value, keyPath, value);
  }
  return ok(current);
};

/** 1-based line of an offset. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

class Stop extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

function jsonProblem(text: string, path: string, stop: Stop): Diagnostic {
  const line = lineAt(text, stop.at);
  const start = text.lastIndexOf('\n', stop.at - 1) + 1;
  const excerpt = text.slice(start).split(/\r?\n/, 1)[0]!.slice(0, MAX_EXCERPT).trimEnd();
  return error('json-syntax', `not valid JSON: ${stop.message}`, {
    location: `${path}:${line}:${stop.at - start + 1}`,
    ...(excerpt ? { excerpt } : {}),
    help: 'correct the line; the trainer would stop at it too',
  });
}

class Scanner {
  at = 0;
  private readonly text: string;
  constructor(text: string) {
    this.text = text;
    if (text.startsWith('\ufeff')) this.at = 1;
  }

  stop(message: string): never {
    throw new Stop(Math.min(this.at, this.text.length), message);
  }

  blank(): void {
    while (/[ \t\r\n]/.test(this.text[this.at] ?? '')) this.at += 1;
  }

  value(depth: number): JsonNode {
    if (depth > MAX_DEPTH) this.stop(`more than ${MAX_DEPTH} levels of nesting`);
    const start = this.at;
    const first = this.text[start];
    if (first === '{') return this.object(depth);
    if (first === '[') return this.array(depth);
    if (first === '"') {
      const value = this.string();
      return { value, start, end: this.at };
    }
    // Python's json also takes NaN and Infinity; no setting here may hold them, but the file is read all the same.
    const word = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity)/.exec(
      this.text.slice(start, start + 400),
    )?.[0];
    if (!word)
      this.stop(
        first === undefined
          ? 'the text ends here'
          : first === "'"
            ? 'strings need double quotes'
            : `unexpected ${first}`,
      );
    this.at += word.length;
    const constants: Record<string, FileValue> = { true: true, false: false, null: null };
    return { value: word in constants ? constants[word]! : Number(word), start, end: this.at };
  }

  private object(depth: number): JsonNode {
    const start = this.at;
    const members: { key: string; keyStart: number; node: JsonNode }[] = [];
    this.sequence('}', () => {
      const keyStart = this.at;
      if (this.text[this.at] !== '"') this.stop('a key in double quotes is missing');
      const key = this.string();
      this.blank();
      if (this.text[this.at] !== ':') this.stop(`a colon is missing after "${key}"`);
      this.at += 1;
      this.blank();
      members.push({ key, keyStart, node: this.value(depth + 1) });
    });
    const value = Object.fromEntries(members.map(({ key, node }) => [key, node.value]));
    return { value, start, end: this.at, members };
  }

  private array(depth: number): JsonNode {
    const start = this.at;
    const items: FileValue[] = [];
    this.sequence(']', () => items.push(this.value(depth + 1).value));
    return { value: items, start, end: this.at };
  }

  /** Items between an opening and a closing bracket. */
  private sequence(close: string, item: () => void): void {
    this.at += 1;
    this.blank();
    if (this.text[this.at] === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      item();
      this.blank();
      const next = this.text[this.at];
      if (next !== ',' && next !== close) this.stop(`a comma or ${close} is missing`);
      this.at += 1;
      if (next === close) return;
      this.blank();
      if (this.text[this.at] === close) this.stop('a comma before the closing bracket');
    }
  }

  private string(): string {
    const match = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
    match.lastIndex = this.at;
    const raw = match.exec(this.text)?.[0];
    if (raw === undefined) this.stop('a string is not closed');
    try {
      const value = JSON.parse(raw) as string;
      this.at += raw.length;
      return value;
    } catch {
      return this.stop('a string with an unknown escape');
    }
  }
}

/** Of a key that stands twice the last one holds, as in Python. */
function setIn(text: string, node: JsonNode, keyPath: readonly string[], value: FileValue): string {
  const [name, ...rest] = keyPath;
  if (name === undefined || !node.members) {
    const nested = keyPath.reduceRight<FileValue>((inner, key) => ({ [key]: inner }), value);
    return text.slice(0, node.start) + JSON.stringify(nested) + text.slice(node.end);
  }
  const member = node.members.findLast((each) => each.key === name);
  if (member) return setIn(text, member.node, rest, value);
  const inner = rest.reduceRight<FileValue>((each, key) => ({ [key]: each }), value);
  const last = node.members.at(-1);
  if (!last) {
    return `${text.slice(0, node.start)}{${JSON.stringify(name)}: ${JSON.stringify(inner)}}${text.slice(node.end)}`;
  }
  const lead = /(\r?\n[ \t]*)$/.exec(text.slice(node.start + 1, last.keyStart))?.[1] ?? ' ';
  const colon = text.slice(text.indexOf(':', last.keyStart + JSON.stringify(last.key).length), last.node.start);
  const added = `,${lead}${JSON.stringify(name)}${colon || ': '}${JSON.stringify(inner)}`;
  return text.slice(0, last.node.end) + added + text.slice(last.node.end);
}
