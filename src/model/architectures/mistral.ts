import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults, peftDefaults } from './parts.ts';

export const ministral3: Architecture = {
  modelTypes: ['ministral3'],
  source: 'transformers 5.17 models/ministral3/modeling_ministral3.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 34,
      heads: 32,
      kvHeads: 8,
      vocab: 131072,
      headDim: 128,
    });
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, { scaledQueries: true })],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};

export const mistral: Architecture = {
  modelTypes: ['mistral', 'ministral'],
  source: 'transformers 5.17 models/mistral/modeling_mistral.py, models/ministral/modeling_ministral.py',
  describe: (config, modelType) => {
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
      // Ministral makes a full and a sliding mask, whichever its layers use.
      masks: modelType === 'ministral' ? 2 : 1,
      peft:
        modelType === 'ministral'
          ? noPeftDefaults
          : peftDefaults(['q_proj', 'v_proj'], ['k_proj', 'v_proj', 'down_proj'], ['down_proj']),
    });
  },
};
