import { REDIRECTIONS, type ShellToken, type ShellWord } from './lexer.ts';

/** `NAME=( … )`. */
export interface ArrayAssignment {
  readonly kind: 'array';
  readonly name: string;
  readonly appends: boolean;
  readonly items: readonly ShellWord[];
}

/** The words of a command without its redirections; `A=( … )` as one. */
export function wordsOf(tokens: readonly ShellToken[]): readonly (ShellWord | ArrayAssignment)[] {
  const words: (ShellWord | ArrayAssignment)[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    if (token.kind === 'operator') {
      if (REDIRECTIONS.has(token.text)) at += 1;
      continue;
    }
    const opens = /^([A-Za-z_]\w*)(\+?)=$/.exec(plainOf(token) ?? '');
    const bracket = tokens[at + 1];
    if (opens && isOperator(bracket, '(') && bracket.start === token.end) {
      const close = tokens.findIndex((each, index) => index > at && isOperator(each, ')'));
      const items = tokens.slice(at + 2, close < 0 ? undefined : close);
      words.push({
        kind: 'array',
        name: opens[1]!,
        appends: opens[2] === '+',
        items: items.filter((item): item is ShellWord => item.kind === 'word'),
      });
      at = close < 0 ? tokens.length : close;
      continue;
    }
    words.push(token);
  }
  return words;
}

const ENDS = new Set(['\n', ';', ';;', ';&', ';;&', '&', '&&', '||', '|', '|&', '(', ')']);

/** Index behind the last token of the command that begins at `from`. */
export function endOfCommand(tokens: readonly ShellToken[], from: number): number {
  for (let at = from; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    if (token.kind === 'word') continue;
    const before = tokens[at - 1];
    const array =
      token.text === '(' && before?.kind === 'word' && before.end === token.start && /=$/.test(plainOf(before) ?? '');
    if (array) {
      const close = tokens.findIndex((each, index) => index > at && isOperator(each, ')'));
      at = close < 0 ? tokens.length : close;
      continue;
    }
    if (ENDS.has(token.text)) return Math.max(at, from + 1);
  }
  return tokens.length;
}

/** Whether a token is one of these operators. */
export const isOperator = (
  token: ShellToken | undefined,
  ...texts: readonly string[]
): token is ShellToken & { kind: 'operator' } => token?.kind === 'operator' && texts.includes(token.text);

/** The text of a word in which nothing is quoted or expanded. */
export function plainOf(token: ShellToken | undefined): string | undefined {
  if (token?.kind !== 'word' || !token.bare || token.parts.length !== 1) return undefined;
  const [part] = token.parts;
  return part!.kind === 'text' ? part!.text : undefined;
}

/** Index of the next word that is `word`; the end where there is none. */
export function skipTo(tokens: readonly ShellToken[], from: number, word: string): number {
  const found = tokens.findIndex((token, index) => index > from && plainOf(token) === word);
  return found < 0 ? tokens.length : found;
}
