import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults, peftDefaults } from './parts.ts';

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
