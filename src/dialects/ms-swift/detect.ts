import type { ReadContext } from '../contract.ts';
import type { Claim, Position } from '../dialect.ts';
import { readScript } from '../hf-trainer/script.ts';
import { programName } from '../scan-options.ts';

export type SwiftCommand = 'sft' | 'pt' | 'rlhf';

/** How ms-swift is started. */
export interface SwiftStart {
  readonly claim: Claim;
  readonly argsFrom: number;
  readonly command: SwiftCommand;
  /** `cli`: its own command, which may start torchrun; `script`: something else has started this process. */
  readonly form: 'cli' | 'script';
}

const isCommand = (word: string | undefined): word is SwiftCommand =>
  word === 'sft' || word === 'pt' || word === 'rlhf';

/** `swift sft|pt|rlhf`, `python -m swift.cli.sft`, `torchrun swift/cli/sft.py`, and `llm_sft.py` of release 1. */
export function startOfSwift(position: Position, context: ReadContext): SwiftStart | undefined {
  const { argv, index, target } = position;
  if (!target) {
    const name = argv[index];
    const command = argv[index + 1];
    if (name === undefined || programName(name) !== 'swift' || !isCommand(command)) return undefined;
    return { claim: { from: index, to: argv.length }, argsFrom: index + 2, command, form: 'cli' };
  }
  const claim: Claim = { from: target.index, to: argv.length };
  const own = /^swift(?:\.cli)?(?:\.main)?$/.test(target.name) && isCommand(argv[target.argsFrom]);
  if (target.form !== 'script' && (own || programName(target.name) === 'swift') && isCommand(argv[target.argsFrom])) {
    return { claim, argsFrom: target.argsFrom + 1, command: argv[target.argsFrom] as SwiftCommand, form: 'cli' };
  }
  const module = /^swift\.cli\.(sft|pt|rlhf)$/.exec(target.name)?.[1];
  if (target.form === 'module' && isCommand(module))
    return { claim, argsFrom: target.argsFrom, command: module, form: 'script' };
  if (target.form !== 'script') return undefined;
  const named = /(?:^|\/)swift\/cli\/(sft|pt|rlhf)\.py$/.exec(target.name)?.[1];
  const older = /(?:^|\/)(?:llm_)?(sft|pt|rlhf)\.py$/.exec(target.name)?.[1];
  const { text } = readScript(target, context);
  const command = named ?? (older && text !== undefined && /\bfrom\s+swift\b/.test(text) ? older : undefined);
  return isCommand(command) ? { claim, argsFrom: target.argsFrom, command, form: 'script' } : undefined;
}
