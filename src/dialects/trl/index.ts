import type { Dialect } from '../dialect.ts';
import { claimTrlFile, TRL_SIGN } from './claim-file.ts';
import { startOfTrl } from './detect.ts';
import { TRL_EXAMPLES } from './example.ts';
import { readTrl, type TrlDetail } from './read.ts';
import { trlIn } from './versions.ts';
import { writeTrl } from './write.ts';

/** TRL's command line, its scripts, and scripts that parse its config classes. */
export const trl: Dialect<TrlDetail> = {
  id: 'trl',
  kind: 'trainer',
  title: 'TRL',
  docs: 'https://huggingface.co/docs/trl/clis',
  examples: TRL_EXAMPLES,
  detect: (position, context) => startOfTrl(position, context)?.claim,
  read: (_, position, context) => readTrl(startOfTrl(position, context)!, trlIn(context.versions), position, context),
  write: writeTrl,
  fileSign: TRL_SIGN,
  claimFile: claimTrlFile,
};
