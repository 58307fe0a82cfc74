import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { fusedGatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const glm: Architecture = {
  modelTypes: ['glm', 'glm4'],
  source: 'transformers 5.17 models/glm/modeling_glm.py, models/glm4/modeling_glm4.py',
  describe: (config, modelType) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 13696,
      layers: 40,
      heads: 32,
      kvHeads: 2,
      vocab: 151552,
      headDim: 128,
    });
    const { hiddenSize } = keys;
    const rotaryDim = Math.floor(keys.shape.headDim * config.rotaryFactor(['partial_rotary_factor'], 0.5));
    // GLM 4 norms each block's result as well.
    const after = (name: string): readonly Op[] => (modelType === 'glm4' ? [hiddenNorm(name, hiddenSize)] : []);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', hiddenSize),
            block: selfAttention(keys.shape, {
              qkvBias: config.flag('attention_bias', true),
              rotaryDim,
              alwaysJoin: true,
              rotaryForm: { pairs: true, tables: 'repeated' },
            }),
            after: after('post_self_attn_layernorm'),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', hiddenSize),
            block: fusedGatedMlp(hiddenSize, keys.intermediateSize, keys.activation),
            after: after('post_mlp_layernorm'),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
