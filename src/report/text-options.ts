import { styleText } from 'node:util';

/** How text may look; nothing here looks at a terminal. */
export interface TextOptions {
  readonly colour: boolean;
  /** Columns. */
  readonly width: number;
  /** false: ASCII only. Default true. */
  readonly unicode?: boolean;
}

type Format = Parameters<typeof styleText>[0];

/** Colours a piece of text, or leaves it, as told. */
export const paint = (options: TextOptions, format: Format, text: string): string =>
  options.colour && text !== '' ? styleText(format, text, { validateStream: false }) : text;

const ASCII: Readonly<Record<string, string>> = {
  '×': 'x',
  '→': '->',
  '…': '...',
  '–': '-',
  '−': '-',
  '≤': '<=',
  '≥': '>=',
};

/** Replaces our own signs where the terminal has ASCII only; other people's text (a path) keeps its letters. */
export const plainSigns = (options: TextOptions, text: string): string =>
  options.unicode === false ? text.replace(/[×→…–−≤≥]/g, (sign) => ASCII[sign]!) : text;
