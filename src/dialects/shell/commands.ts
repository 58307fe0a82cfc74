import { folderAfter } from './folder.ts';
import { lexShell, REDIRECTIONS, type ShellToken, type ShellWord } from './lexer.ts';
import { isQuiet } from './quiet.ts';
import { Scope } from './scope.ts';
import { type ArrayAssignment, endOfCommand, isOperator, plainOf, skipTo, wordsOf } from './statements.ts';
import { expandText, expandWord, type Field, type Value, Variables } from './variables.ts';

/** A word of a command with what it stands for. */
export interface CommandWord {
  /** Where it stands in the text. */
  readonly start: number;
  readonly end: number;
  readonly fields: readonly Field[];
}

/** One simple command of a script, at its place. */
export interface ShellCommand {
  readonly words: readonly CommandWord[];
  /** Every variable that the script has set by then, exported or not in front of this command. */
  readonly variables: ReadonlyMap<string, Value | undefined>;
  /** Those that programs started here see. */
  readonly exported: ReadonlySet<string>;
  /** `cd` before it; null: to a place that is not known. */
  readonly folder: string | null | undefined;
  /** Innermost block it stands in. */
  readonly block: 'loop' | 'branch' | 'function' | undefined;
  /** Interpreter of an environment that the script switched on before. */
  readonly python: string | undefined;
}

/** What is asked for the text of a file that a script reads in with `source`. */
export type ReadSource = (path: string) => string | undefined;

const ASSIGNMENT = /^([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=/;
const MAX_SOURCES = 8;

/**
 * Walks a script in the order of its text and hands out every simple command with the variables that hold there. Nothing is
 * executed: a branch counts as taken where it stands, and what it sets is unknown behind it.
 */
export function walkShell(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
  positional: readonly string[],
  readSource: ReadSource,
): readonly ShellCommand[] {
  const walker = new Walker(environment, positional, readSource);
  walker.walk(text, true);
  return walker.commands;
}

class Walker {
  readonly commands: ShellCommand[] = [];
  private readonly variables: Variables;
  private readonly scope: Scope;
  private readonly readSource: ReadSource;
  private folder: string | null | undefined;
  private python: string | undefined;
  private sources = 0;
  private collects = true;

  constructor(
    environment: Readonly<Record<string, string | undefined>>,
    positional: readonly string[],
    readSource: ReadSource,
  ) {
    this.variables = new Variables(environment, positional);
    this.scope = new Scope(this.variables);
    this.readSource = readSource;
  }

  walk(text: string, collects: boolean): void {
    const outer = this.collects;
    this.collects = collects;
    const tokens = lexShell(text);
    let at = 0;
    let guarded = false;
    while (at < tokens.length) {
      const token = tokens[at]!;
      if (token.kind === 'operator') {
        this.operator(token.text);
        if (token.text !== '&&' && token.text !== '||') guarded = false;
        at += 1;
        if (REDIRECTIONS.has(token.text)) at += 1;
        continue;
      }
      const next = this.reserved(tokens, at);
      if (next > at) {
        at = next;
        continue;
      }
      const end = endOfCommand(tokens, at);
      const words = wordsOf(tokens.slice(at, end));
      const isTest = this.simple(words, guarded);
      guarded = isTest;
      at = end;
    }
    this.collects = outer;
  }

  private operator(text: string): void {
    if (text === '(') this.scope.open('group');
    if (text === ')') this.scope.close('group');
    if (text === ';;' || text === ';&' || text === ';;&') this.scope.nextBranch();
  }

  /** Steps over words that build blocks; answers where the next command begins, `at` itself where none was there. */
  private reserved(tokens: readonly ShellToken[], at: number): number {
    const word = plainOf(tokens[at]);
    switch (word) {
      case 'if':
        this.scope.open('branch');
        return at + 1;
      case 'while':
      case 'until':
        this.scope.open('loop');
        return at + 1;
      case 'then':
      case 'do':
      case '!':
        return at + 1;
      case 'else':
      case 'elif':
        this.scope.nextBranch();
        return at + 1;
      case 'fi':
      case 'esac':
        this.scope.close('branch');
        return at + 1;
      case 'done':
        this.scope.close('loop');
        return at + 1;
      case '{':
        if (this.scope.top?.kind !== 'function' || this.scope.top?.case) this.scope.open('group');
        return at + 1;
      case '}':
        if (this.scope.top?.kind === 'group') this.scope.close('group');
        else this.scope.close('function');
        return at + 1;
      case 'for':
      case 'select':
        return this.loop(tokens, at);
      case 'case':
        this.scope.open('branch', true);
        return skipTo(tokens, at, 'in') + 1;
      case 'function':
        this.scope.open('function');
        return at + 2;
      default:
    }
    if (isOperator(tokens[at + 1], '(') && isOperator(tokens[at + 2], ')') && word !== undefined) {
      this.scope.open('function');
      return at + 3;
    }
    return this.pattern(tokens, at);
  }

  /** `pattern)` at the head of a branch of `case`. */
  private pattern(tokens: readonly ShellToken[], at: number): number {
    if (!this.scope.top?.case) return at;
    let end = at;
    while (tokens[end]?.kind === 'word' && isOperator(tokens[end + 1], '|')) end += 2;
    return tokens[end]?.kind === 'word' && isOperator(tokens[end + 1], ')') ? end + 2 : at;
  }

  private loop(tokens: readonly ShellToken[], at: number): number {
    const name = plainOf(tokens[at + 1]);
    const end = tokens.findIndex((token, index) => index > at && isOperator(token, '\n', ';'));
    const words = tokens.slice(at + 3, end < 0 ? undefined : end).filter((token) => token.kind === 'word');
    this.scope.open('loop');
    if (name !== undefined && /^[A-Za-z_]\w*$/.test(name)) {
      const values = words.flatMap((word) => expandWord(word as ShellWord, this.variables));
      this.scope.assign(name, values.length === 1 && values[0]!.known ? values[0]!.text : null);
    }
    return end < 0 ? tokens.length : end + 1;
  }

  /** One simple command. True: a test, behind whose `&&` a thing may or may not happen. */
  private simple(words: readonly (ShellWord | ArrayAssignment)[], guarded: boolean): boolean {
    let at = 0;
    const own: [string, Value | undefined][] = [];
    for (; at < words.length; at += 1) {
      const assigned = this.assignment(words[at]!);
      if (!assigned) break;
      own.push(assigned);
    }
    const rest = words.slice(at).filter((word): word is ShellWord => word.kind === 'word');
    if (rest.length === 0) {
      for (const [name, value] of own) this.scope.assign(name, guarded ? null : value);
      return false;
    }
    const fields = rest.flatMap((word) => expandWord(word, this.variables));
    const name = fields[0]?.text ?? '';
    if (this.builtin(name, rest, words.slice(at + 1), fields)) return /^(?:\[|\[\[|test)$/.test(name);
    if (!this.collects) return false;
    // Assignments in front stay words of the command.
    const all = words.filter((word): word is ShellWord => word.kind === 'word');
    this.commands.push({
      words: all.map((word, index) => ({
        start: word.start,
        end: word.end,
        fields: index < at ? assignmentField(word, this.variables) : expandWord(word, this.variables),
      })),
      variables: this.variables.snapshot(),
      exported: new Set(this.scope.exported),
      folder: this.folder,
      block: this.scope.block,
      python: this.python,
    });
    return false;
  }

  /** Commands of the shell itself that change what follows, or start nothing. True: it was one. */
  private builtin(
    name: string,
    rest: readonly ShellWord[],
    words: readonly (ShellWord | ArrayAssignment)[],
    fields: readonly Field[],
  ): boolean {
    const operands = fields.slice(1).filter(({ text }) => !text.startsWith('-'));
    switch (name) {
      case 'export':
      case 'declare':
      case 'typeset':
      case 'local':
      case 'readonly': {
        const exports = name === 'export' || fields.some(({ text }) => /^-\w*x/.test(text));
        for (const word of words) {
          const assigned = this.assignment(word);
          const plain = assigned?.[0] ?? (word.kind === 'word' ? plainOf(word) : undefined);
          if (assigned) this.scope.assign(...assigned);
          if (exports && plain !== undefined && /^[A-Za-z_]\w*$/.test(plain)) this.scope.exported.add(plain);
        }
        return true;
      }
      case 'unset':
        for (const { text } of operands) this.scope.assign(text, undefined);
        return true;
      case 'set': {
        const dashes = fields.findIndex(({ text }) => text === '--');
        if (dashes >= 0) this.variables.positional = fields.slice(dashes + 1).map(({ text }) => text);
        if (fields.some(({ text }) => /^-\w*a/.test(text) || text === 'allexport')) this.scope.exported.add('*');
        return true;
      }
      case 'shift':
        this.variables.positional = this.variables.positional.slice(Number(operands[0]?.text ?? 1) || 1);
        return true;
      case 'read':
      case 'mapfile':
      case 'readarray':
      case 'getopts':
        for (const { text } of operands) if (/^[A-Za-z_]\w*$/.test(text)) this.scope.assign(text, null);
        return true;
      case 'cd':
      case 'pushd':
        this.folder = folderAfter(rest, operands[0], this.folder);
        return true;
      case 'source':
      case '.':
        if (operands[0]) this.source(operands[0]);
        return true;
      case 'eval':
        if (fields.every(({ known }) => known))
          this.evaluate(
            fields
              .slice(1)
              .map(({ text }) => text)
              .join(' '),
            rest,
          );
        return true;
      default:
        return isQuiet(name, operands[0]?.text);
    }
  }

  private source({ text, known }: Field): void {
    if (!known) return;
    if (/(?:^|\/)activate$/.test(text)) {
      this.python = text.replace(/activate$/, 'python');
      return;
    }
    this.sources += 1;
    const body = this.sources > MAX_SOURCES ? undefined : this.readSource(text);
    if (body !== undefined) this.walk(body, false);
  }

  /** `eval "$COMMAND"`: its words come from a text, and have no place of their own. */
  private evaluate(text: string, rest: readonly ShellWord[]): void {
    const first = this.commands.length;
    this.walk(text, this.collects);
    for (let at = first; at < this.commands.length; at += 1) {
      const command = this.commands[at]!;
      const { start } = rest[0]!;
      const words = command.words.map((word) => ({ ...word, start, end: start }));
      this.commands[at] = { ...command, words };
    }
  }

  private assignment(word: ShellWord | ArrayAssignment): [string, Value | undefined] | undefined {
    if (word.kind === 'array') {
      const fields = word.items.flatMap((item) => expandWord(item, this.variables));
      const values = fields.every(({ known }) => known) ? fields.map(({ text }) => text) : null;
      if (!word.appends) return [word.name, values];
      const before = this.variables.get(word.name) ?? [];
      return [word.name, values === null || before === null ? null : [...[before].flat(), ...values]];
    }
    const [first, ...others] = word.parts;
    if (first?.kind !== 'text' || first.quoted) return undefined;
    const match = ASSIGNMENT.exec(first.text);
    if (!match) return undefined;
    const [head, name, index, appends] = match;
    const parts = [{ ...first, text: first.text.slice(head.length) }, ...others];
    const text = expandText({ ...word, parts }, this.variables);
    if (index) return [name!, null];
    if (!appends) return [name!, text];
    const before = this.variables.get(name!) ?? '';
    return [name!, text === null || typeof before !== 'string' ? null : before + text];
  }
}

function assignmentField(word: ShellWord, variables: Variables): readonly Field[] {
  const text = expandText(word, variables);
  if (text !== null) return [{ text, known: true }];
  const raw = word.parts.map((part) => ('raw' in part ? part.raw : part.text)).join('');
  return [{ text: raw, known: false }];
}
