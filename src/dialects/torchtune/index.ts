// https://meta-pytorch.org/torchtune/main/deep_dives/configs.html
import type { Dialect } from '../dialect.ts';
import { claimTorchtuneFile, TORCHTUNE_SIGN } from './claim-file.ts';
import { startOfTorchtune } from './detect.ts';
import { TORCHTUNE_EXAMPLES } from './example.ts';
import { readTorchtune, type TorchtuneDetail } from './read.ts';
import { writeTorchtune } from './write.ts';

/** torchtune: `tune run`, and recipes that a launcher starts. */
export const torchtune: Dialect<TorchtuneDetail> = {
  id: 'torchtune',
  kind: 'trainer',
  title: 'torchtune',
  docs: 'https://meta-pytorch.org/torchtune/main/deep_dives/configs.html',
  examples: TORCHTUNE_EXAMPLES,
  detect: (position, context) => startOfTorchtune(position, context)?.claim,
  read: (_, position, context) => readTorchtune(startOfTorchtune(position, context)!, position, context),
  write: writeTorchtune,
  fileSign: TORCHTUNE_SIGN,
  claimFile: claimTorchtuneFile,
};
