import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults } from './parts.ts';

export const helium: Architecture = {
  modelTypes: ['helium'],
  source: 'transformers 5.17 models/helium/modeling_helium.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2560,
      intermediate: 7040,
      layers: 24,
      heads: 20,
      kvHeads: 20,
      vocab: 48000,
      headDim: 128,
    });
    const { heads, headDim } = keys.shape;
    if (heads * headDim !== keys.hiddenSize) {
      config.refuse('a Helium whose heads do not add up to hidden_size is not described');
    }
    const form = 'rms_weight_inside';
    return llamaLine(keys, {
      kinds: [
        llamaLayer(
          keys,
          { qkvBias: config.flag('attention_bias', false), rotaryForm: { pairs: true, tables: 'repeated' } },
          config.flag('mlp_bias', false),
          form,
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: form,
      peft: noPeftDefaults,
    });
  },
};
