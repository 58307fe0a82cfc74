import { parse } from 'shell-quote';
import { type Diagnostic, error, fail, ok, type Result } from '../core/index.ts';

/**
 * Splits one command line into words as a shell would: quotes, backslashes, lines continued with a backslash, comments.
 * Variables and globs stay as they are typed; nothing is expanded or run. What only a shell can do (pipes, redirections,
 * several commands, substitutions) is one error that names it. `location` is how messages name the place of the text.
 */
export function splitCommand(text: string, location?: string): Result<string[]> {
  const plain = toPlainWords(text);
  if (!plain.ok)
    return fail({ ...plain.error, ...(location === undefined ? {} : { location }), excerpt: excerptOf(text) });
  const words = parse(plain.value).flatMap((entry) =>
    typeof entry === 'string' ? [entry] : 'pattern' in entry ? [entry.pattern] : [],
  );
  return ok(words.map((word) => word.replaceAll(DOLLAR, '$').replaceAll(HASH, '#')));
}

/** One line that a shell splits into exactly these words, with quotes only where they are needed. */
export const quoteCommand = (argv: readonly string[]): string =>
  argv.map((word) => (SAFE.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');

const SAFE = /^[\w@%+=:,./-]+$/;

/** Stand-ins from Unicode's private use area: characters that shell-quote would expand or take for a comment. */
const DOLLAR = '\uf8f0';
const HASH = '\uf8f1';

const excerptOf = (text: string): string => text.trim().split(/\r?\n/, 1)[0]!.slice(0, 160);

/** The text with comments and continued lines taken out and `$` and `#` inside words hidden; an error for shell syntax. */
function toPlainWords(text: string): Result<string, Diagnostic> {
  let out = '';
  let quote: '' | "'" | '"' | "$'" = '';
  let word = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    const insideWord: boolean = word;
    // A blank ends a word unless it is quoted; the branches below step over one behind a backslash.
    word = quote !== '' || !/\s/.test(character);
    const next = text[at + 1];
    const continued = /^\\\r?\n/.exec(text.slice(at, at + 3));
    if (quote === "'") {
      if (character === "'") quote = '';
      out += character === '$' ? DOLLAR : character === '#' ? HASH : character;
    } else if (continued) {
      word = insideWord;
      at += continued[0].length - 1;
    } else if (character === '\\') {
      if (next === undefined) return unclosed('the backslash at the end has nothing to protect');
      out += character + next;
      at += 1;
    } else if (quote === "$'") {
      if (character === "'") quote = '';
      out += character;
    } else if (character === '`' || (character === '$' && next === '(')) {
      return shellOnly(
        `a command substitution (${character === '`' ? '`…`' : '$(…)'})`,
        'write what it gives in its place',
      );
    } else if (quote === '"') {
      if (character === '"') quote = '';
      out += character === '$' ? DOLLAR : character;
    } else if (character === '$' && next === "'") {
      quote = "$'";
      out += "$'";
      at += 1;
    } else if (character === '"' || character === "'") {
      quote = character;
      out += character;
    } else if (character === '#' && !insideWord) {
      const end = text.indexOf('\n', at);
      at = (end < 0 ? text.length : end) - 1;
    } else if (character === '\n') {
      if (out.trim() !== '' && hasWords(text.slice(at))) {
        return shellOnly('a second line', 'end each line but the last with a backslash');
      }
      out += ' ';
    } else if (OPERATOR.test(character)) {
      const operator = /^(?:&&|\|\||>>|<<<?|[<>]&|&>|\|&|[<>]\(|.)/.exec(text.slice(at))![0];
      return shellOnly(
        WHAT[operator] ?? `${operator}`,
        HELP[operator] ?? 'put the whole line into a script and start that',
      );
    } else if (/[\u2018\u2019\u201c\u201d]/.test(character)) {
      return shellOnlyQuote(character);
    } else {
      out += character === '$' ? DOLLAR : character === '#' ? HASH : character;
    }
  }
  return quote === '' ? ok(out) : unclosed(`a quote ${quote} is not closed`);
}

const hasWords = (rest: string): boolean => rest.split('\n').some((line) => /^\s*[^\s#]/.test(line));

const OPERATOR = /[|&;<>()]/;

const WHAT: Readonly<Record<string, string>> = {
  '|': 'a pipe (|)',
  '|&': 'a pipe (|&)',
  '&&': 'a second command (&&)',
  '||': 'a second command (||)',
  ';': 'a second command (;)',
  '&': 'a start in the background (&)',
  '>': 'a redirection (>)',
  '>>': 'a redirection (>>)',
  '<': 'a redirection (<)',
  '>&': 'a redirection (>&)',
  '&>': 'a redirection (&>)',
  '<<': 'a text from the following lines (<<)',
  '(': 'a bracket outside quotes',
  ')': 'a bracket outside quotes',
};

const LOGGED = 'leave it out: the output of the run is kept in its run folder';
const HELP: Readonly<Record<string, string>> = {
  '|': LOGGED,
  '|&': LOGGED,
  '>': LOGGED,
  '>>': LOGGED,
  '>&': LOGGED,
  '&>': LOGGED,
  '&': 'leave the & out, and put it behind the snug command',
  '(': 'put the word in single quotes',
  ')': 'put the word in single quotes',
};

const shellOnly = (what: string, help: string): Result<never, Diagnostic> => ({
  ok: false,
  error: error('shell-syntax', `${what} needs a shell, and the command is started without one`, { help }),
});

const shellOnlyQuote = (character: string): Result<never, Diagnostic> => ({
  ok: false,
  error: error('shell-syntax', `${character} is a typographic quote, which no shell takes for one`, {
    help: 'write it as \' or "',
  }),
});

const unclosed = (message: string): Result<never, Diagnostic> => ({
  ok: false,
  error: error('shell-syntax', message, { help: 'close it, or put the word in the other kind of quotes' }),
});
