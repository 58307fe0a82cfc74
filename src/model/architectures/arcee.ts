import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, plainMlp, preNormLayer, selfAttention } from './parts.ts';

export const arcee: Architecture = {
  modelTypes: ['arcee'],
  source: 'transformers 5.17 models/arcee/modeling_arcee.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2560,
      intermediate: 18432,
      layers: 32,
      heads: 32,
      vocab: 32000,
      activation: 'relu2',
    });
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: selfAttention(keys.shape, { qkvBias: bias, outputBias: bias }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
            block: plainMlp(['up_proj', 'down_proj'], keys.hiddenSize, keys.intermediateSize, keys.activation, {
              bias: config.flag('mlp_bias', false),
            }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
