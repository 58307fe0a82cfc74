import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, preNormLayer, type SelfAttentionOptions, selfAttention } from './parts.ts';
import { denseFirst, readSharedExperts } from './shared-experts.ts';

export const glm4Moe: Architecture = {
  modelTypes: ['glm4_moe', 'solar_open'],
  source: 'transformers 5.17 models/glm4_moe/modeling_glm4_moe.py, models/solar_open/modeling_solar_open.py',
  describe: (config, modelType) => {
    const solar = modelType === 'solar_open';
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 10944,
      layers: solar ? 48 : 46,
      heads: solar ? 64 : 96,
      kvHeads: 8,
      vocab: solar ? 196608 : 151552,
      ...(solar ? { headDim: 128 } : {}),
    });
    const factor = config.rotaryFactor(['partial_rotary_factor'], solar ? 1 : 0.5);
    const rotaryDim = Math.floor(keys.shape.headDim * factor);
    const bias = config.flag('attention_bias', false);
    // Solar's attention is Llama's.
    const options: SelfAttentionOptions = solar
      ? { qkvBias: bias }
      : {
          qkvBias: bias,
          lateHeads: true,
          rotaryDim,
          alwaysJoin: true,
          ...(config.flag('use_qk_norm', false) ? { headNorm: 'rms' } : {}),
        };
    const sparse = preNormLayer(
      { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape, options) },
      {
        norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
        block: readSharedExperts(config, keys, {
          size: solar ? 1280 : 1408,
          experts: 128,
          chosen: 8,
          shared: 1,
          groups: 1,
          normalise: true,
        }),
      },
    );
    return llamaLine(keys, {
      kinds: [sparse, llamaLayer(keys, options)],
      order: solar ? new Array<number>(keys.layers).fill(0) : denseFirst(config, keys.layers, 1),
      tied: config.flag('tie_word_embeddings', false),
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
