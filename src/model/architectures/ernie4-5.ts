import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults } from './parts.ts';

export const ernie45: Architecture = {
  modelTypes: ['ernie4_5'],
  source: 'transformers 5.17 models/ernie4_5/modeling_ernie4_5.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 1024,
      intermediate: 3072,
      layers: 18,
      heads: 16,
      kvHeads: 2,
      vocab: 103424,
      headDim: 128,
    });
    const bias = config.flag('use_bias', false);
    return llamaLine(keys, {
      kinds: [
        llamaLayer(
          { ...keys, shape: { ...keys.shape, dropout: 0 } },
          { qkvBias: bias, outputBias: bias, rotaryForm: { pairs: true, wide: 'inside', tables: 'repeated' } },
          bias,
        ),
      ],
      tied: config.flag('tie_word_embeddings', true),
      peft: noPeftDefaults,
    });
  },
};
