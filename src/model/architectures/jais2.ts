import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, plainMlp, preNormLayer, selfAttention } from './parts.ts';

export const jais2: Architecture = {
  modelTypes: ['jais2'],
  source: 'transformers 5.17 models/jais2/modeling_jais2.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 3328,
      intermediate: 26624,
      layers: 32,
      heads: 26,
      vocab: 150272,
      activation: 'relu2',
    });
    const bias = config.flag('attention_bias', true);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize, 'layer'),
            block: selfAttention(keys.shape, { qkvBias: bias, outputBias: bias }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize, 'layer'),
            block: plainMlp(['up_proj', 'down_proj'], keys.hiddenSize, keys.intermediateSize, keys.activation, {
              bias: config.flag('mlp_bias', true),
              unnamed: true,
            }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: 'layer',
      normBias: true,
      peft: noPeftDefaults,
    });
  },
};
