// https://llamafactory.readthedocs.io/en/latest/advanced/arguments.html

import type { Dialect } from '../dialect.ts';
import { claimLlamaFactoryFile, LLAMA_FACTORY_SIGN } from './claim-file.ts';
import { startOfLlamaFactory } from './detect.ts';
import { LLAMA_FACTORY_EXAMPLES } from './example.ts';
import { type LlamaFactoryDetail, readLlamaFactory } from './read.ts';
import { writeLlamaFactory } from './write.ts';

/** LLaMA-Factory: its own command, and the script that a launcher starts. */
export const llamaFactory: Dialect<LlamaFactoryDetail> = {
  id: 'llama-factory',
  kind: 'trainer',
  title: 'LLaMA-Factory',
  docs: 'https://llamafactory.readthedocs.io/en/latest/advanced/arguments.html',
  examples: LLAMA_FACTORY_EXAMPLES,
  detect: (position, context) => startOfLlamaFactory(position, context)?.claim,
  read: (_, position, context) => readLlamaFactory(startOfLlamaFactory(position, context)!, position, context),
  write: writeLlamaFactory,
  fileSign: LLAMA_FACTORY_SIGN,
  claimFile: claimLlamaFactoryFile,
};
