import type { Claim, Position } from '../dialect.ts';
import { programName } from '../scan-options.ts';

/** `tool train …`: what makes a command yours, and no look-alike. undefined: not mine. */
export function startOfTemplate({ argv, index, target }: Position): Claim | undefined {
  // A launcher before you has named a script or module; without one, the command itself begins at `index`.
  if (target || programName(argv[index] ?? '') !== 'tool' || argv[index + 1] !== 'train') return undefined;
  return { from: index, to: argv.length };
}
