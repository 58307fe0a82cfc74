import type { ReadContext } from '../contract.ts';
import type { Claim, Position, Target } from '../dialect.ts';
import { readScript } from '../hf-trainer/script.ts';
import { programName } from '../scan-options.ts';

/** How LLaMA-Factory is started. */
export interface LlamaFactoryStart {
  readonly claim: Claim;
  /** First token of the trainer's own arguments. */
  readonly argsFrom: number;
  /** `cli`: its own command, which starts the processes; `script`: something else has started this process. */
  readonly form: 'cli' | 'script';
}

const COMMANDS = ['llamafactory-cli', 'lmf'];
const CLI_MODULES = ['llamafactory', 'llamafactory.cli'];
const TRAINER_MODULES = ['llamafactory.launcher', 'llamafactory.train.tuner', 'llmtuner.train.tuner'];

/** `llamafactory-cli train`, `lmf train`, `src/train.py`, `src/train_bash.py`, `llamafactory/launcher.py`. */
export function startOfLlamaFactory(position: Position, context: ReadContext): LlamaFactoryStart | undefined {
  const { argv, index, target } = position;
  if (!target) {
    const name = argv[index];
    if (name === undefined || !COMMANDS.includes(programName(name)) || argv[index + 1] !== 'train') return undefined;
    return { claim: { from: index, to: argv.length }, argsFrom: index + 2, form: 'cli' };
  }
  const claim: Claim = { from: target.index, to: argv.length };
  if (target.form === 'module') {
    if (CLI_MODULES.includes(target.name) && argv[target.argsFrom] === 'train') {
      return { claim, argsFrom: target.argsFrom + 1, form: 'cli' };
    }
    return TRAINER_MODULES.includes(target.name) ? { claim, argsFrom: target.argsFrom, form: 'script' } : undefined;
  }
  if (target.form === 'program' && COMMANDS.includes(programName(target.name)) && argv[target.argsFrom] === 'train') {
    return { claim, argsFrom: target.argsFrom + 1, form: 'cli' };
  }
  if (target.form !== 'script' || !isTrainScript(target, argv, context)) return undefined;
  return { claim, argsFrom: target.argsFrom, form: 'script' };
}

const OWN_FLAGS = /^--(?:stage|finetuning_type|cutoff_len|quantization_bit|lora_target|dataset_dir|template)(?:=|$)/;

/** A script that can be read says what it imports; one that cannot is known by its name and what it is given. */
function isTrainScript(target: Target, argv: readonly string[], context: ReadContext): boolean {
  if (!/\.py$/.test(target.name)) return false;
  const { text } = readScript(target, context);
  if (text !== undefined) return /\b(?:from|import)\s+(?:llamafactory|llmtuner|glmtuner)\b/.test(text);
  if (/(?:^|\/)train_bash\.py$|(?:^|\/)llamafactory\/launcher\.py$/.test(target.name)) return true;
  const args = argv.slice(target.argsFrom);
  if (/(?:^|\/)src\/train_(?:sft|pt|rm|ppo|dpo)\.py$/.test(target.name)) return args.some((arg) => OWN_FLAGS.test(arg));
  if (!/(?:^|\/)src\/train\.py$/.test(target.name)) return false;
  return /\.(?:ya?ml|json)$/.test(args[0] ?? '') || args.some((arg) => OWN_FLAGS.test(arg));
}
