import type { ReadContext } from '../contract.ts';
import type { Claim, Position, Target } from '../dialect.ts';
import { readScript, type ScriptFacts } from '../hf-trainer/script.ts';
import { COMMANDS, type Command } from './fields.ts';

/** How TRL is started. */
export interface TrlStart {
  readonly claim: Claim;
  /** First token of the trainer's own arguments. */
  readonly argsFrom: number;
  readonly command: Command;
  /** `cli`: `trl sft`; `own`: a script of TRL's `scripts` folder; `script`: somebody's script that uses TRL. */
  readonly form: 'cli' | 'own' | 'script';
  readonly script: ScriptFacts;
}

/** `trl sft …`, `python trl/scripts/sft.py …`, `-m trl.scripts.sft`, and scripts whose text uses TRL or that take `--config x.yaml`. */
export function startOfTrl(position: Position, context: ReadContext): TrlStart | undefined {
  const { argv, index, target } = position;
  const none = readScript(undefined, context);
  if (!target) {
    if (!/(?:^|\/)trl$/.test(argv[index] ?? '')) return undefined;
    return cliStart(argv, index, index + 1, none);
  }
  if (target.form === 'module' && /^trl(?:\.cli(?:\.main)?)?$/.test(target.name)) {
    return cliStart(argv, target.index, target.argsFrom, none);
  }
  const claim = { from: target.index, to: argv.length };
  const own = ownScript(target);
  if (own) return { claim, argsFrom: target.argsFrom, command: own, form: 'own', script: none };
  if (target.form === 'program') return undefined;
  const script = readScript(target, context);
  const uses = USES.some((word) => script.mentions(word)) || /\bfrom\s+trl\b|\bimport\s+trl\b/.test(script.text ?? '');
  if (!uses && (script.text !== undefined || configFile(argv, target.argsFrom) === undefined)) return undefined;
  return { claim, argsFrom: target.argsFrom, command: commandOfScript(script, target), form: 'script', script };
}

const USES = ['TrlParser', 'SFTConfig', 'SFTTrainer', 'DPOConfig', 'DPOTrainer', 'GRPOConfig', 'GRPOTrainer'];

function cliStart(argv: readonly string[], from: number, next: number, script: ScriptFacts): TrlStart | undefined {
  const command = COMMANDS.find((name) => name === argv[next]);
  return command && { claim: { from, to: argv.length }, argsFrom: next + 1, command, form: 'cli', script };
}

function ownScript(target: Target): Command | undefined {
  const path = target.form === 'module' ? `${target.name.replaceAll('.', '/')}.py` : target.name;
  const name = /(?:^|\/)trl\/scripts\/(\w+)\.py$/.exec(path)?.[1];
  return COMMANDS.find((command) => command === name);
}

/** Token of FILE in `--config FILE`; the one-token form is not read by TrlParser. */
export function configFile(argv: readonly string[], argsFrom: number): number | undefined {
  const at = argv.indexOf('--config', argsFrom);
  return at >= 0 && /\.ya?ml$/i.test(argv[at + 1] ?? '') ? at + 1 : undefined;
}

const TRAINERS: readonly (readonly [RegExp, Command])[] = [
  [/\bSFT(?:Trainer|Config)\b/, 'sft'],
  [/\bDPO(?:Trainer|Config)\b/, 'dpo'],
  [/\bGRPO(?:Trainer|Config)\b/, 'grpo'],
  [/\bKTO(?:Trainer|Config)\b/, 'kto'],
  [/\bRLOO(?:Trainer|Config)\b/, 'rloo'],
  [/\bReward(?:Trainer|Config)\b/, 'reward'],
];

/** The trainer that the text names, the file's name deciding between several. */
function commandOfScript(script: ScriptFacts, target: Target): Command {
  const named = COMMANDS.find((command) =>
    new RegExp(`(?:^|[/_.-])${command}(?:[_.-]|$)`).test(target.name.toLowerCase()),
  );
  if (named) return named;
  return TRAINERS.find(([pattern]) => pattern.test(script.text ?? ''))?.[1] ?? 'sft';
}
