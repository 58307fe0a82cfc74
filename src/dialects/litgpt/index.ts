// https://github.com/Lightning-AI/litgpt/blob/main/tutorials/finetune.md
import type { Dialect } from '../dialect.ts';
import { claimLitgptFile, LITGPT_SIGN } from './claim-file.ts';
import { startOfLitgpt } from './detect.ts';
import { LITGPT_EXAMPLES } from './example.ts';
import { type LitgptDetail, readLitgpt } from './read.ts';
import { writeLitgpt } from './write.ts';

/** litgpt: its own command, and the scripts of older releases. */
export const litgpt: Dialect<LitgptDetail> = {
  id: 'litgpt',
  kind: 'trainer',
  title: 'LitGPT',
  docs: 'https://github.com/Lightning-AI/litgpt/blob/main/tutorials/finetune.md',
  examples: LITGPT_EXAMPLES,
  detect: (position, context) => startOfLitgpt(position, context)?.claim,
  read: (_, position, context) => readLitgpt(startOfLitgpt(position, context)!, position, context),
  write: writeLitgpt,
  fileSign: LITGPT_SIGN,
  claimFile: claimLitgptFile,
};
