import type { BareFile, FileClaim } from '../dialect.ts';
import { TRAINING_ARGUMENT_NAMES } from './fields.ts';

/** DeepSpeed's own, whose files share `fp16`, `bf16` and `gradient_accumulation_steps` with TrainingArguments. */
const ENGINE_KEYS = ['zero_optimization', 'train_micro_batch_size_per_gpu', 'train_batch_size'];

/** A JSON file of arguments, which any script could take. */
export function claimArgumentsFile({ path, values }: BareFile): FileClaim | undefined {
  if (!path.endsWith('.json') || ENGINE_KEYS.some((key) => values.has(key))) return undefined;
  if ([...values.keys()].filter((key) => TRAINING_ARGUMENT_NAMES.has(key)).length < 2) return undefined;
  return { kind: 'unclear', what: 'a file of TrainingArguments', commands: [`python train.py ${path}`] };
}
