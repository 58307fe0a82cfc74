import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { peftDefaults } from './parts.ts';

export const mistral: Architecture = {
  modelTypes: ['mistral'],
  source: 'transformers 5.17 models/mistral/modeling_mistral.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 32000,
    });
    return llamaLine(keys, {
      kinds: [llamaLayer(keys)],
      tied: config.flag('tie_word_embeddings', false),
      peft: peftDefaults(['q_proj', 'v_proj'], ['k_proj', 'v_proj', 'down_proj'], ['down_proj']),
    });
  },
};
