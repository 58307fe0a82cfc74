import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { dropout, gatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const seedOss: Architecture = {
  modelTypes: ['seed_oss'],
  source: 'transformers 5.17 models/seed_oss/modeling_seed_oss.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 27648,
      layers: 64,
      heads: 80,
      kvHeads: 8,
      vocab: 155136,
      headDim: 128,
      dropout: 0.1,
    });
    const residual = config.number('residual_dropout', 0.1);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: selfAttention(keys.shape, {
              qkvBias: config.flag('attention_bias', true),
              outputBias: config.flag('attention_out_bias', false),
              outputDropout: residual,
            }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
            block: gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation, config.flag('mlp_bias', false)),
            after: residual > 0 ? [dropout(residual, 'hidden_states', 'hidden_states')] : [],
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
