import type { ShellWord } from './lexer.ts';
import type { Field } from './variables.ts';

/** Stands for the folder that the script lies in. */
export const SCRIPT_FOLDER = '\u0000script';

/** The folder after `cd operand`; null: a place that is not known. `rest` are the words of the command as written. */
export function folderAfter(
  rest: readonly ShellWord[],
  operand: Field | undefined,
  before: string | null | undefined,
): string | null | undefined {
  if (operand?.known) {
    if (operand.text.startsWith('/') || before === undefined) return operand.text;
    return before === null ? null : `${before}/${operand.text}`;
  }
  // `cd "$(dirname "$0")"`, in its many spellings: the folder of the script itself.
  const text = rest[1]?.parts.map((part) => ('raw' in part ? part.raw : part.text)).join('') ?? '';
  const own =
    /dirname[^)]*(?:\$0|\$\{0\}|BASH_SOURCE)/.test(text) || /^\$\{(?:0|BASH_SOURCE(?:\[0\])?)%\/\*\}$/.test(text);
  const below = /\)["']?((?:\/[\w.-]+)+)$/.exec(text)?.[1] ?? '';
  return own ? `${SCRIPT_FOLDER}${below}` : null;
}
