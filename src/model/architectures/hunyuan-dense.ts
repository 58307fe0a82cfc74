import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults } from './parts.ts';

export const hunyuanDense: Architecture = {
  modelTypes: ['hunyuan_v1_dense'],
  source: 'transformers 5.17 models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 11008,
      layers: 32,
      heads: 32,
      vocab: 290943,
    });
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [
        llamaLayer(keys, {
          qkvBias: bias,
          outputBias: bias,
          headNorm: 'rms',
          headNormAfterRotary: true,
          headNormNames: ['query_layernorm', 'key_layernorm'],
        }),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
