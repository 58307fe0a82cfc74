import type { Dialect } from '../dialect.ts';
import { claimArgumentsFile } from './claim-file.ts';
import { detectHfTrainer } from './detect.ts';
import { HF_TRAINER_EXAMPLES } from './example.ts';
import { type HfDetail, readHfTrainer } from './read.ts';
import { writeHfTrainer } from './write.ts';

/** Scripts that parse transformers' TrainingArguments with HfArgumentParser. */
export const hfTrainer: Dialect<HfDetail> = {
  id: 'hf-trainer',
  kind: 'trainer',
  title: 'Hugging Face Trainer script',
  docs: 'https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments',
  examples: HF_TRAINER_EXAMPLES,
  detect: detectHfTrainer,
  read: readHfTrainer,
  write: writeHfTrainer,
  fileSign: 'JSON with the fields of TrainingArguments',
  claimFile: claimArgumentsFile,
};
