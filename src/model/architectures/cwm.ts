import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults } from './parts.ts';

/** Llama's layers with a full and a sliding mask. */
export const cwm: Architecture = {
  modelTypes: ['cwm'],
  source: 'transformers 5.17 models/cwm/modeling_cwm.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 6144,
      intermediate: 21504,
      layers: 64,
      heads: 48,
      kvHeads: 8,
      headDim: 128,
      vocab: 128256,
    });
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, {}, config.flag('mlp_bias', false))],
      tied: config.flag('tie_word_embeddings', false),
      masks: 2,
      peft: noPeftDefaults,
    });
  },
};
