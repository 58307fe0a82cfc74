import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, preNormLayer, type SelfAttentionOptions, selfAttention } from './parts.ts';
import { denseFirst, expertsWithShared } from './shared-experts.ts';

export const hunyuan3: Architecture = {
  modelTypes: ['hy_v3'],
  source: 'transformers 5.17 models/hy_v3/modeling_hy_v3.py',
  describe: (config) => {
    if (config.flag('mlp_bias', false)) config.refuse('a Hy3 with mlp_bias is not described');
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 13312,
      layers: 80,
      heads: 64,
      kvHeads: 8,
      headDim: 128,
      vocab: 120832,
    });
    const bias = config.flag('attention_bias', false);
    const options: SelfAttentionOptions = {
      qkvBias: bias,
      outputBias: bias,
      headNorm: 'rms',
      headNormAfterHeads: true,
    };
    const size = config.count('moe_intermediate_size', 1536);
    const block = expertsWithShared({
      hiddenSize: keys.hiddenSize,
      intermediateSize: size,
      experts: config.count(['num_experts', 'num_local_experts'], 192),
      expertsPerToken: config.count('num_experts_per_tok', 8),
      shared: size * config.count('num_shared_experts', 1),
      normalise: true,
      routing: { form: 'sigmoid_groups', groups: 1 },
      activation: keys.activation,
      named: false,
      addsWide: config.flag('enable_moe_fp32_combine', true),
    });
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape, options) },
          { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
        ),
        llamaLayer(keys, options, config.flag('mlp_bias', false)),
      ],
      order: denseFirst(config, keys.layers, 1),
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
