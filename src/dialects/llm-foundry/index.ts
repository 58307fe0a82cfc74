// https://github.com/mosaicml/llm-foundry/tree/main/scripts/train
import type { Dialect } from '../dialect.ts';
import { claimFoundryFile, FOUNDRY_SIGN } from './claim-file.ts';
import { startOfFoundry } from './detect.ts';
import { FOUNDRY_EXAMPLES } from './example.ts';
import { type FoundryDetail, readFoundry } from './read.ts';
import { writeFoundry } from './write.ts';

/** LLM Foundry: its train.py under `composer` or another launcher, and its own command. */
export const llmFoundry: Dialect<FoundryDetail> = {
  id: 'llm-foundry',
  kind: 'trainer',
  title: 'LLM Foundry',
  docs: 'https://github.com/mosaicml/llm-foundry/tree/main/scripts/train',
  examples: FOUNDRY_EXAMPLES,
  standIn: 'train_loader:\n',
  detect: (position, context) => startOfFoundry(position, context)?.claim,
  read: (_, position, context) => readFoundry(startOfFoundry(position, context)!, position, context),
  write: writeFoundry,
  fileSign: FOUNDRY_SIGN,
  claimFile: claimFoundryFile,
};
