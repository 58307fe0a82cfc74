import type { Claim, Position } from '../dialect.ts';
import { programName } from '../scan-options.ts';

/** `autotrain llm --train …`; its other commands train other things, and without `--train` it serves. */
export function startOfAutotrain({ argv, index, target }: Position): Claim | undefined {
  if (target || programName(argv[index] ?? '') !== 'autotrain' || argv[index + 1] !== 'llm') return undefined;
  return argv.includes('--train', index) ? { from: index, to: argv.length } : undefined;
}
