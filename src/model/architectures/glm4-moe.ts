import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, preNormLayer, type SelfAttentionOptions, selfAttention } from './parts.ts';
import { expertsWithShared } from './shared-experts.ts';

export const glm4Moe: Architecture = {
  modelTypes: ['glm4_moe'],
  source: 'transformers 5.17 models/glm4_moe/modeling_glm4_moe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 10944,
      layers: 46,
      heads: 96,
      kvHeads: 8,
      vocab: 151552,
    });
    const rotaryDim = Math.floor(keys.shape.headDim * config.rotaryFactor(['partial_rotary_factor'], 0.5));
    const options: SelfAttentionOptions = {
      qkvBias: config.flag('attention_bias', false),
      lateHeads: true,
      rotaryDim,
      alwaysJoin: true,
      ...(config.flag('use_qk_norm', false) ? { headNorm: 'rms' } : {}),
    };
    const moeSize = config.count('moe_intermediate_size', 1408);
    const sparse = preNormLayer(
      { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape, options) },
      {
        norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
        block: expertsWithShared({
          hiddenSize: keys.hiddenSize,
          intermediateSize: moeSize,
          experts: config.count(['n_routed_experts', 'num_local_experts'], 128),
          expertsPerToken: config.count('num_experts_per_tok', 8),
          shared: moeSize * config.count('n_shared_experts', 1),
          normalise: config.flag('norm_topk_prob', true),
          routing: { form: 'sigmoid_groups', groups: config.count('n_group', 1) },
          activation: keys.activation,
        }),
      },
    );
    const dense = config.whole('first_k_dense_replace', 1);
    return llamaLine(keys, {
      kinds: [sparse, llamaLayer(keys, options)],
      order: Array.from({ length: keys.layers }, (_, index) => (index < dense ? 1 : 0)),
      tied: config.flag('tie_word_embeddings', false),
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
