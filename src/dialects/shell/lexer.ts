/** A piece of a word of shell text. Ranges count in the whole text. */
export type WordPart =
  | { readonly kind: 'text'; readonly text: string; readonly quoted: boolean }
  /** `$X`, `${X}`, `${X:-default}`, `${A[@]}`: `inside` is what stands between the braces. */
  | { readonly kind: 'variable'; readonly inside: string; readonly raw: string; readonly quoted: boolean }
  /** `$((…))`. */
  | { readonly kind: 'arithmetic'; readonly inside: string; readonly raw: string; readonly quoted: boolean }
  /** `$(…)`, backquotes, `<(…)`: never executed. */
  | { readonly kind: 'command'; readonly inside: string; readonly raw: string; readonly quoted: boolean };

export interface ShellWord {
  readonly kind: 'word';
  readonly start: number;
  readonly end: number;
  readonly parts: readonly WordPart[];
  /** Nothing of it is quoted: it may be a reserved word or an assignment. */
  readonly bare: boolean;
}

export interface ShellOperator {
  readonly kind: 'operator';
  readonly start: number;
  readonly end: number;
  /** `;`, `&&`, `|`, `\n`, `(`, `>`, …; a redirection without its target. */
  readonly text: string;
}

export type ShellToken = ShellWord | ShellOperator;

const OPERATORS = [
  ...['<<<', '<<-', '&>>', ';;&', '&&', '||', ';;', ';&', '|&', '<<', '>>', '<&', '>&', '<>', '>|', '&>'],
  ...[';', '&', '|', '<', '>', '(', ')', '\n'],
];

/** Operators that take a file name or descriptor. */
export const REDIRECTIONS: ReadonlySet<string> = new Set(['<', '>', '>>', '<&', '>&', '<>', '>|', '&>', '&>>', '<<<']);

/**
 * Splits shell text into words and operators. Comments and the bodies of here-documents are left out, lines continued with a
 * backslash are one. Text whose quotes do not close ends with what was read so far.
 */
export function lexShell(text: string): readonly ShellToken[] {
  const lexer = new Lexer(text);
  lexer.run();
  return lexer.tokens;
}

class Lexer {
  readonly tokens: ShellToken[] = [];
  private readonly text: string;
  private at = 0;
  /** Ends of here-documents that begin on the next line. */
  private readonly pending: { end: string; tabs: boolean }[] = [];

  constructor(text: string) {
    this.text = text;
  }

  run(): void {
    while (this.at < this.text.length) {
      const character = this.text[this.at]!;
      const continued = this.continuation();
      if (continued > 0) this.at += continued;
      else if (/[ \t\r]/.test(character)) this.at += 1;
      else if (character === '#') this.skipComment();
      else if (!this.readOperator()) this.readWord();
    }
  }

  /** Length of a backslash with the line end behind it. */
  private continuation(): number {
    if (this.text[this.at] !== '\\') return 0;
    if (this.text[this.at + 1] === '\n') return 2;
    return this.text.startsWith('\\\r\n', this.at) ? 3 : 0;
  }

  private skipComment(): void {
    const end = this.text.indexOf('\n', this.at);
    this.at = end < 0 ? this.text.length : end;
  }

  private readOperator(): boolean {
    // `2>` and `1>&2`: the number is part of the redirection.
    const descriptor = /^\d+(?=[<>])/.exec(this.text.slice(this.at, this.at + 4))?.[0].length ?? 0;
    const from = this.at + descriptor;
    // `<(…)` and `>(…)` stand for a file name.
    if (/^[<>]\(/.test(this.text.slice(from, from + 2))) return false;
    const found = OPERATORS.find((operator) => this.text.startsWith(operator, from));
    if (found === undefined) return false;
    this.tokens.push({ kind: 'operator', start: this.at, end: from + found.length, text: found });
    this.at = from + found.length;
    if (found === '<<' || found === '<<-') this.readHereEnd(found === '<<-');
    if (found === '\n') this.skipHereDocuments();
    return true;
  }

  private readHereEnd(tabs: boolean): void {
    const match = /^[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([^\s;&|<>()]+))/.exec(this.text.slice(this.at));
    if (!match) return;
    this.at += match[0].length;
    this.pending.push({ end: match[1] ?? match[2] ?? match[3]!, tabs });
  }

  private skipHereDocuments(): void {
    for (const { end, tabs } of this.pending.splice(0)) {
      while (this.at < this.text.length) {
        const stop = this.text.indexOf('\n', this.at);
        const line = this.text.slice(this.at, stop < 0 ? undefined : stop).replace(/\r$/, '');
        this.at = stop < 0 ? this.text.length : stop + 1;
        if ((tabs ? line.replace(/^\t+/, '') : line) === end) break;
      }
    }
  }

  private readWord(): void {
    const start = this.at;
    const parts: WordPart[] = [];
    let plain = '';
    let bare = true;
    const flush = (): void => {
      if (plain !== '') parts.push({ kind: 'text', text: plain, quoted: false });
      plain = '';
    };
    while (this.at < this.text.length) {
      const character = this.text[this.at]!;
      const continued = this.continuation();
      if (continued > 0) this.at += continued;
      else if (/[ \t\n;&|()]/.test(character)) break;
      else if (/[<>]/.test(character)) {
        if (this.text[this.at + 1] !== '(') break;
        flush();
        parts.push(this.commandPart(2, false));
      } else if (character === '\\') {
        plain += this.text[this.at + 1] ?? '';
        bare = false;
        this.at += 2;
      } else if (character === "'" || character === '"' || this.text.startsWith("$'", this.at)) {
        flush();
        bare = false;
        parts.push(...this.quoted(character));
      } else if (character === '$' || character === '`') {
        const part = this.dollar(false);
        if (part === undefined) plain += character;
        else {
          flush();
          parts.push(part);
        }
      } else {
        if (character !== '\r') plain += character;
        this.at += 1;
      }
    }
    flush();
    this.tokens.push({ kind: 'word', start, end: this.at, parts, bare });
  }

  private quoted(opening: string): WordPart[] {
    if (opening !== '"') {
      const from = this.at + (opening === '$' ? 2 : 1);
      const close = this.text.indexOf("'", from);
      const end = close < 0 ? this.text.length : close;
      this.at = end + 1;
      return [{ kind: 'text', text: this.text.slice(from, end), quoted: true }];
    }
    const parts: WordPart[] = [];
    let plain = '';
    // `""` is a word with nothing in it.
    const flush = (): void => {
      if (plain !== '' || parts.length === 0) parts.push({ kind: 'text', text: plain, quoted: true });
      plain = '';
    };
    this.at += 1;
    while (this.at < this.text.length && this.text[this.at] !== '"') {
      const character = this.text[this.at]!;
      const continued = this.continuation();
      if (continued > 0) this.at += continued;
      else if (character === '\\' && /["\\$`]/.test(this.text[this.at + 1] ?? '')) {
        plain += this.text[this.at + 1];
        this.at += 2;
      } else if (character === '$' || character === '`') {
        const part = this.dollar(true);
        if (part === undefined) plain += character;
        else {
          flush();
          parts.push(part);
        }
      } else {
        plain += character;
        this.at += 1;
      }
    }
    this.at += 1;
    flush();
    return parts;
  }

  /** What begins with `$` or a backquote at the place; undefined (one step on): a plain dollar. */
  private dollar(quoted: boolean): WordPart | undefined {
    const start = this.at;
    const rest = this.text.slice(start, start + 3);
    if (rest.startsWith('$((')) {
      const end = this.text.indexOf('))', start + 3);
      this.at = end < 0 ? this.text.length : end + 2;
      const raw = this.text.slice(start, this.at);
      return { kind: 'arithmetic', inside: raw.slice(3, -2), raw, quoted };
    }
    if (rest.startsWith('$(')) return this.commandPart(2, quoted);
    if (rest.startsWith('`')) {
      const end = this.text.indexOf('`', start + 1);
      this.at = end < 0 ? this.text.length : end + 1;
      const raw = this.text.slice(start, this.at);
      return { kind: 'command', inside: raw.slice(1, -1), raw, quoted };
    }
    if (rest.startsWith('${')) {
      this.at = closing(this.text, start + 2, '{', '}');
      const raw = this.text.slice(start, this.at);
      return { kind: 'variable', inside: raw.slice(2, -1), raw, quoted };
    }
    const name = /^\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])/.exec(this.text.slice(start, start + 200))?.[0];
    this.at = start + (name?.length ?? 1);
    return name === undefined ? undefined : { kind: 'variable', inside: name.slice(1), raw: name, quoted };
  }

  private commandPart(opening: number, quoted: boolean): WordPart {
    const start = this.at;
    this.at = closing(this.text, start + opening, '(', ')');
    const raw = this.text.slice(start, this.at);
    return { kind: 'command', inside: raw.slice(opening, -1), raw, quoted };
  }
}

/** Just behind the bracket that closes one opened before `from`; quoted brackets do not count. */
function closing(text: string, from: number, open: string, close: string): number {
  let depth = 1;
  let quote = '';
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '\\' && quote !== "'") at += 1;
    else if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === open) depth += 1;
    else if (character === close) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return text.length;
}
