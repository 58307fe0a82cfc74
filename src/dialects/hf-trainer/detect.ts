import type { ReadContext } from '../contract.ts';
import type { Claim, Position } from '../dialect.ts';
import { parseFlags } from '../hf-argparser/grammar.ts';
import { parseJson } from '../json-text.ts';
import { tokensFrom } from './arguments.ts';
import { SCRIPT_FIELDS, TRAINING_ARGUMENT_NAMES } from './fields.ts';
import { readScript, type ScriptFacts } from './script.ts';
import { parsesArguments } from './script-values.ts';

/** Names that only TrainingArguments has; `seed`, `fp16` or `debug` alone could be any program's. */
const DISTINCTIVE = new Set([
  'per_device_train_batch_size',
  'per_device_eval_batch_size',
  'per_gpu_train_batch_size',
  'gradient_accumulation_steps',
  'num_train_epochs',
  'gradient_checkpointing_kwargs',
  'save_total_limit',
  'save_strategy',
  'logging_strategy',
  'eval_strategy',
  'evaluation_strategy',
  'lr_scheduler_type',
  'dataloader_num_workers',
  'do_train',
]);

/** Any script or module whose arguments, argument file or text are those of HfArgumentParser with TrainingArguments. */
export function detectHfTrainer(position: Position, context: ReadContext): Claim | undefined {
  const { target, argv } = position;
  if (!target || target.form === 'program') return undefined;
  const claim: Claim = { from: target.index, to: argv.length };
  const tokens = tokensFrom(argv, target.argsFrom);
  const parsed = parseFlags(tokens, { fields: SCRIPT_FIELDS, negatable: new Set(), open: true });
  const given = new Set(parsed.flags.map((flag) => flag.key));
  if ([...given].some((key) => DISTINCTIVE.has(key))) return claim;
  // Alone each could be any program's; together they are the Trainer's habit.
  if (given.has('model_name_or_path') && given.has('output_dir')) return claim;
  const only = tokens.length === 1 ? tokens[0]!.text : undefined;
  if (only?.endsWith('.json') && namesTrainingArguments(only, context)) return claim;
  const script = readScript(target, context);
  const uses = script.mentions('TrainingArguments') || script.mentions('Seq2SeqTrainingArguments');
  return uses && (script.mentions('HfArgumentParser') || callsTrainingArguments(script)) ? claim : undefined;
}

/** A script that sets up the run in its own text, with or without flags of its own. */
const callsTrainingArguments = (script: ScriptFacts): boolean =>
  parsesArguments(script) === false || /TrainingArguments\s*\(/.test(script.text ?? '');

/** A file that is missing or broken counts too: reading it then says what is wrong with it. */
function namesTrainingArguments(path: string, context: ReadContext): boolean {
  const source = context.source(path);
  if (!source.ok) return true;
  const node = parseJson(source.value.text, path);
  if (!node.ok) return true;
  return node.value.members?.some((member) => TRAINING_ARGUMENT_NAMES.has(member.key)) ?? false;
}
