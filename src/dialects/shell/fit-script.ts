import type { FittedLaunch, FittedWord, WordedLaunch } from '../contract.ts';
import { quoteCommand } from '../split-command.ts';
import type { ShellCommand } from './commands.ts';
import type { ShellScript } from './script.ts';

/** What a change of a command inside a script becomes: a changed copy of the script, started in its place. */
export interface ScriptFit {
  readonly script: ShellScript;
  readonly command: ShellCommand;
  /** Words of the command that starts the script. */
  readonly outer: readonly string[];
  /** Variables that the script sets for the command, which those of the process do not reach. */
  readonly assigned: ReadonlySet<string>;
  /** Why a copy must not be started in place of the script; undefined: it does the same as the script. */
  readonly unsafe: string | undefined;
}

/** Puts the fitted words of the inner command back where they stand in the script. */
export function fitScript(fit: ScriptFit, fitted: WordedLaunch, copyFolder: string): WordedLaunch {
  const { script, command, outer, assigned } = fit;
  const { start, end } = { start: command.words[0]!.start, end: command.words.at(-1)!.end };
  const fromText = start === end;
  const reason = fit.unsafe ?? (fromText ? 'its words come out of a variable' : undefined);
  // In front of the command a variable wins over what the script sets; by hand there is no other place for it.
  const inFront = (name: string): boolean => reason !== undefined || assigned.has(name);
  const variables = Object.entries(fitted.env);
  const env = Object.fromEntries(variables.filter(([name]) => !inFront(name)));
  const prefix = variables
    .filter(([name]) => inFront(name))
    .map(([name, value]) => `${name}=${quoteCommand([value])} `)
    .join('');
  const words: FittedWord[] = outer.map((text, index) => ({ text, index }));
  const same: WordedLaunch = { argv: outer, env, files: fitted.files, words };
  const edits = wordEdits(command, fitted.words);
  if (prefix !== '') edits.unshift({ start, end: start, text: prefix });
  if (edits.length === 0) return same;
  if (reason === undefined) {
    return withCopy(same, script, applyRanges(script.text, edits, 0, script.text.length), copyFolder);
  }
  const line = fromText
    ? prefix + quoteCommand(fitted.words.map(({ text }) => text))
    : applyRanges(script.text, edits, start, end);
  return { ...same, byHand: { reason, place: placeOf(script, start), command: line } };
}

function withCopy(same: WordedLaunch, script: ShellScript, text: string, copyFolder: string): WordedLaunch {
  const replaced = (words: readonly FittedWord[]): WordedLaunch => ({
    ...same,
    argv: words.map((word) => word.text),
    words,
  });
  if (script.path === undefined) {
    return replaced(same.words.map((word, index) => (index === script.token ? { text, instead: index } : word)));
  }
  const copy = `${copyFolder}/${script.path.split('/').at(-1)}`;
  // A copy is no program: its interpreter is named where the script was started by itself.
  const inPlace = [...(script.direct ? [script.interpreter] : []), copy].map((each) => ({
    text: each,
    instead: script.token,
  }));
  const words = same.words.flatMap((word, index) => (index === script.token ? inPlace : [word]));
  const file: FittedLaunch['files'][number] = { source: script.path, copy, before: script.text, text };
  return { ...replaced(words), files: [...same.files, file] };
}

interface RangeEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Ranges of the script's text that change. A word that stands for several is written out where one of them changes. */
function wordEdits(command: ShellCommand, fitted: readonly FittedWord[]): RangeEdit[] {
  const tokens = command.words.flatMap((word, at) => word.fields.map((field) => ({ at, field })));
  const made = new Map<number, { text: string; kept: boolean }[]>();
  let at = 0;
  for (const word of fitted) {
    const kept = word.index !== undefined;
    if (kept) at = tokens[word.index!]!.at;
    else if (word.instead !== undefined) at = tokens[word.instead]!.at;
    const field = kept ? tokens[word.index!]!.field : undefined;
    const text = field && !field.known ? `"${field.text}"` : quoteCommand([word.text]);
    made.set(at, [...(made.get(at) ?? []), { text, kept }]);
  }
  const edits: RangeEdit[] = [];
  for (const [index, word] of command.words.entries()) {
    const now = made.get(index) ?? [];
    const whole = now.filter(({ kept }) => kept).length === word.fields.length;
    if (whole && now.every(({ kept }) => kept)) continue;
    const added = now.slice(word.fields.length);
    // Only something behind it: the word itself stays as it is written.
    if (whole && now.slice(0, word.fields.length).every(({ kept }) => kept)) {
      edits.push({ start: word.end, end: word.end, text: added.map(({ text }) => ` ${text}`).join('') });
      continue;
    }
    edits.push({ start: word.start, end: word.end, text: now.map(({ text }) => text).join(' ') });
  }
  return edits;
}

/** `text[from, to)` with the edits in it. */
function applyRanges(text: string, edits: readonly RangeEdit[], from: number, to: number): string {
  let out = '';
  let at = from;
  for (const edit of edits) {
    out += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return out + text.slice(at, to);
}

/** `train.sh:12`, or the argument that holds the text. */
export const placeOf = (script: ShellScript, offset: number): string =>
  script.path === undefined ? `argv[${script.token}]` : `${script.path}:${lineOf(script.text, offset)}`;

export const lineOf = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;
