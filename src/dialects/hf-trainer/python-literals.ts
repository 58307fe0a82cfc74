import type { FileValue } from '../dialect.ts';

/** One argument of a call in Python text, as written. */
export interface CallArgument {
  /** undefined: by position. */
  readonly name: string | undefined;
  readonly text: string;
  /** Offset of `text`. */
  readonly at: number;
}

/** Arguments of every call of `name` in the text, in order; a definition or an import is no call. */
export function callsOf(text: string, name: string): readonly (readonly CallArgument[])[] {
  const pattern = new RegExp(`(?<![\\w])(?<!def\\s+)(?<!class\\s+)${name}\\s*\\(`, 'g');
  return [...text.matchAll(pattern)].flatMap((match) => {
    const parts = splitArguments(text, match.index + match[0].length);
    return parts ? [parts.map((part) => readArgument(part))] : [];
  });
}

interface Part {
  readonly text: string;
  readonly at: number;
}

function readArgument({ text, at }: Part): CallArgument {
  const named = /^(\s*)(\w+)(\s*=\s*)(?!=)/.exec(text);
  if (!named) return { name: undefined, text: text.trim(), at };
  const skipped = named[0].length;
  return { name: named[2]!, text: text.slice(skipped).trim(), at: at + named[1]!.length };
}

/** Splits at the commas of one bracket level; undefined: the bracket never closes. */
function splitArguments(text: string, from: number): readonly Part[] | undefined {
  const parts: Part[] = [];
  let depth = 0;
  let start = from;
  // Text without its comments, blanks in their place so that offsets stay.
  let plain = text;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '"' || character === "'") {
      at = endOfString(text, at);
      continue;
    }
    if (character === '#') {
      const end = text.indexOf('\n', at);
      const next = end < 0 ? text.length : end;
      plain = plain.slice(0, at) + ' '.repeat(next - at) + plain.slice(next);
      at = next;
      continue;
    }
    if ('([{'.includes(character)) depth += 1;
    if (')]}'.includes(character)) depth -= 1;
    if (depth < 0 || (depth === 0 && character === ',')) {
      const part = plain.slice(start, at);
      if (part.trim() !== '') parts.push({ text: part, at: start });
      start = at + 1;
    }
    if (depth < 0) return parts;
  }
  return undefined;
}

/** Last character of the string that begins at `at`, triple quotes included. */
function endOfString(text: string, at: number): number {
  const quote = text.startsWith(text[at]!.repeat(3), at) ? text[at]!.repeat(3) : text[at]!;
  for (let next = at + quote.length; next < text.length; next += 1) {
    if (text[next] === '\\') next += 1;
    else if (text.startsWith(quote, next)) return next + quote.length - 1;
  }
  return text.length;
}

/** A value that stands there in full: number, string, True, None, a torch dtype, lists and maps of them. */
export function readLiteral(text: string): FileValue | undefined {
  const word = text.trim();
  if (word in CONSTANTS) return CONSTANTS[word]!;
  if (/^[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(word)) return Number(word.replaceAll('_', ''));
  const string = /^[rbuf]?(["'])((?:(?!\1)[^\\\n]|\\.)*)\1$/i.exec(word);
  if (string) return /^f/i.test(word) && word.includes('{') ? undefined : string[2]!;
  const dtype = /^torch\.(bfloat16|float16|float32|half)$/.exec(word);
  if (dtype) return dtype[1]!;
  if (/^[[(].*[\])]$/s.test(word)) return readList(word);
  return /^\{.*\}$/s.test(word) ? readMap(word) : undefined;
}

const CONSTANTS: Readonly<Record<string, FileValue>> = { True: true, False: false, None: null };

function readList(word: string): FileValue | undefined {
  const items = splitArguments(word, 1)?.map((part) => readLiteral(part.text));
  return items?.every((item) => item !== undefined) ? (items as FileValue[]) : undefined;
}

function readMap(word: string): FileValue | undefined {
  const map: Record<string, FileValue> = {};
  for (const part of splitArguments(word, 1) ?? []) {
    const pair = /^\s*["'](\w+)["']\s*:(.*)$/s.exec(part.text);
    const value = pair ? readLiteral(pair[2]!) : undefined;
    if (!pair || value === undefined) return undefined;
    map[pair[1]!] = value;
  }
  return map;
}
