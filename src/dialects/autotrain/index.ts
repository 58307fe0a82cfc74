// https://huggingface.co/docs/autotrain/llm_finetuning_params
import type { Dialect } from '../dialect.ts';
import { startOfAutotrain } from './detect.ts';
import { AUTOTRAIN_EXAMPLES } from './example.ts';
import { type AutotrainDetail, readAutotrain } from './read.ts';
import { writeAutotrain } from './write.ts';

/** AutoTrain's command for language models. */
export const autotrain: Dialect<AutotrainDetail> = {
  id: 'autotrain',
  kind: 'trainer',
  title: 'AutoTrain',
  docs: 'https://huggingface.co/docs/autotrain/llm_finetuning_params',
  examples: AUTOTRAIN_EXAMPLES,
  detect: startOfAutotrain,
  read: readAutotrain,
  write: writeAutotrain,
};
