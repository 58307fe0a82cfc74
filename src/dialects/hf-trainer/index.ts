import type { Dialect } from '../dialect.ts';
import { detectHfTrainer } from './detect.ts';
import { TRAINING_ARGUMENT_NAMES } from './fields.ts';
import { type HfDetail, readHfTrainer } from './read.ts';
import { writeHfTrainer } from './write.ts';

/** Scripts that parse transformers' TrainingArguments with HfArgumentParser. */
export const hfTrainer: Dialect<HfDetail> = {
  id: 'hf-trainer',
  kind: 'trainer',
  title: 'Hugging Face Trainer script',
  docs: 'https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments',
  detect: detectHfTrainer,
  read: readHfTrainer,
  write: writeHfTrainer,
  fileSign: 'JSON with the fields of TrainingArguments',
  claimFile: ({ path, values }) =>
    path.endsWith('.json') && [...values.keys()].filter((key) => TRAINING_ARGUMENT_NAMES.has(key)).length > 1
      ? { kind: 'unclear', what: 'a file of TrainingArguments', commands: [`python train.py ${path}`] }
      : undefined,
};
