import { stripVTControlCharacters } from 'node:util';
import { type LogLevel, levelOf, PREFIXES } from './prefixes.ts';

/** A leading progress bar, as tqdm prints it. */
export interface ProgressBar {
  readonly label: string;
  readonly done: number;
  readonly total: number;
}

/** A line as a signature sees it. */
export interface CleanLine {
  /** Without escapes, control characters, prefixes, a leading progress bar and a box around it. */
  readonly text: string;
  /** For people: without escapes and control characters only. */
  readonly shown: string;
  readonly rank: number | undefined;
  readonly level: LogLevel | undefined;
  /** The stripped prefixes that could as well be text, joined. */
  readonly weakPrefix: string;
  readonly bar: ProgressBar | undefined;
  /** It stood in a drawn box: a rich traceback's frames, but also a table of samples. */
  readonly boxed: boolean;
  readonly indented: boolean;
}

// The stream of escapes first: a window title may hold any text, which the shared function leaves in.
const OSC = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]/;
const CONTROLS = new RegExp(CONTROL, 'g');
const NOTEBOOK_TAG = /<\/?span\b[^>]*>/g;
const BAR = /^(.{0,200}?)\s*\d{1,3}%\|[^|]*\|\s*(\d+)\/(\d+)\s*\[[^\]]*\]\s*/;
const BOX_LEFT = /^[\s]*[│┃║╭╰┌└├┏┗┡╔╚][─━═\s]*/;
const BOX_RIGHT = /[\s─━═]*[│┃║╮╯┐┘┤┓┛┩╗╝]\s*$/;
const RAY_REPEATS = /\s*\[repeated \d+x across cluster\].*$/;
const MOST_PREFIXES = 8;
/** One of these ends every prefix; a cheap way past the many lines that have none. */
const PREFIX_MARK = /^.{0,160}?[\]:|)>]/;

/** Removes what terminals would act on instead of showing. Tabs stay. */
export function cleanControls(text: string): string {
  let clean = text;
  if (clean.includes('\x1b') || clean.includes('\x9b')) clean = stripVTControlCharacters(clean.replace(OSC, ''));
  if (CONTROL.test(clean)) clean = clean.replace(CONTROLS, '');
  return clean.includes('<span') || clean.includes('</span') ? clean.replace(NOTEBOOK_TAG, '') : clean;
}

/** Reads one line, whatever was put around it. Pure; never fails. */
export function normaliseLine(raw: string): CleanLine {
  const shown = cleanControls(raw);
  let text = shown;
  let rank: number | undefined;
  let level: LogLevel | undefined;
  let weakPrefix = '';
  let bar: ProgressBar | undefined;

  const takeBar = (): boolean => {
    const match = text.includes('%|') ? BAR.exec(text) : null;
    if (!match) return false;
    bar = { label: match[1]!.trim(), done: Number(match[2]), total: Number(match[3]) };
    text = text.slice(match[0].length);
    return true;
  };
  const takePrefix = (): boolean => {
    if (!PREFIX_MARK.test(text)) return false;
    for (const prefix of PREFIXES) {
      const match = prefix.pattern.exec(text);
      if (!match) continue;
      if (prefix.rank !== undefined) rank ??= Number(match[prefix.rank]);
      if (prefix.level !== undefined) level ??= levelOf(match[prefix.level]!);
      // The digits of a rank differ from line to line, the shape does not.
      if (prefix.weak) weakPrefix += match[0].replace(/\d+/g, '#');
      text = text.slice(match[0].length);
      return true;
    }
    return false;
  };
  for (let round = 0; round < MOST_PREFIXES && (takeBar() || takePrefix()); round++);

  const boxed = BOX_LEFT.test(text);
  if (boxed) text = text.replace(BOX_LEFT, '').replace(BOX_RIGHT, '');
  if (text.includes('[repeated ')) text = text.replace(RAY_REPEATS, '');
  return { text: text.trimEnd(), shown, rank, level, weakPrefix, bar, boxed, indented: !boxed && /^\s/.test(text) };
}
