import type { ReadContext } from '../contract.ts';
import type { Claim, Position } from '../dialect.ts';
import { readScript, type ScriptFacts } from '../hf-trainer/script.ts';
import { programName } from '../scan-options.ts';
import type { Task } from './keys.ts';

/** How litgpt is started. */
export interface LitgptStart {
  readonly claim: Claim;
  readonly argsFrom: number;
  readonly task: Task;
  /** Set where the script of an older release is started: sizes stand in its text. */
  readonly script?: ScriptFacts;
}

const COMMANDS: Readonly<Record<string, Task>> = {
  finetune: 'lora',
  finetune_lora: 'lora',
  finetune_full: 'full',
  finetune_adapter: 'adapter',
  finetune_adapter_v2: 'adapter_v2',
  pretrain: 'pretrain',
};

const SECOND: Readonly<Record<string, Task>> = {
  lora: 'lora',
  full: 'full',
  adapter: 'adapter',
  adapter_v2: 'adapter_v2',
};

/** `litgpt finetune_lora`, `litgpt finetune lora` of 0.3, `python litgpt/finetune/lora.py`, `python finetune/lora.py`. */
export function startOfLitgpt(position: Position, context: ReadContext): LitgptStart | undefined {
  const { argv, index, target } = position;
  if (!target) {
    const name = argv[index];
    if (name === undefined || programName(name) !== 'litgpt') return undefined;
    return ofCommand(argv, index + 1, { from: index, to: argv.length });
  }
  const claim: Claim = { from: target.index, to: argv.length };
  if (target.form === 'module') return target.name === 'litgpt' ? ofCommand(argv, target.argsFrom, claim) : undefined;
  if (target.form === 'program' && programName(target.name) === 'litgpt')
    return ofCommand(argv, target.argsFrom, claim);
  if (target.form !== 'script') return undefined;
  const script = readScript(target, context);
  const found = /(?:^|\/)(?:finetune\/)?(lora|full|adapter|adapter_v2|pretrain)\.py$/.exec(target.name)?.[1] as
    | Task
    | undefined;
  if (!found) return undefined;
  const ours =
    script.text === undefined
      ? /(?:^|\/)(?:finetune\/\w+|(?:lit_?gpt|lit-gpt)\/.*)\.py$/.test(target.name) &&
        takesCheckpoint(argv, target.argsFrom)
      : /\b(?:from|import)\s+lit_?gpt\b/.test(script.text);
  return ours ? { claim, argsFrom: target.argsFrom, task: found, script } : undefined;
}

function ofCommand(argv: readonly string[], at: number, claim: Claim): LitgptStart | undefined {
  const task = COMMANDS[argv[at] ?? ''];
  if (!task) return undefined;
  const second = argv[at] === 'finetune' ? SECOND[argv[at + 1] ?? ''] : undefined;
  return { claim, argsFrom: second ? at + 2 : at + 1, task: second ?? task };
}

const takesCheckpoint = (argv: readonly string[], from: number): boolean =>
  argv.slice(from).some((token) => /^--(?:checkpoint_dir|precision|quantize|train\.|config)(?:$|=|\w)/.test(token));
