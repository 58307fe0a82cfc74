import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, preNormLayer, type SelfAttentionOptions, selfAttention } from './parts.ts';
import { denseFirst, readSharedExperts } from './shared-experts.ts';

/** Qwen 3's attention and DeepSeek V3's experts. */
export const dots1: Architecture = {
  modelTypes: ['dots1'],
  source: 'transformers 5.17 models/dots1/modeling_dots1.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4608,
      intermediate: 10944,
      layers: 62,
      heads: 32,
      kvHeads: 32,
      vocab: 152064,
    });
    const bias = config.flag('attention_bias', false);
    const options: SelfAttentionOptions = { qkvBias: bias, outputBias: bias, headNorm: 'rms' };
    const sparse = preNormLayer(
      { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape, options) },
      {
        norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
        block: readSharedExperts(config, keys, { size: 1408, groups: 1, normalise: false }),
      },
    );
    const windows = config.layerNames('layer_types', keys.layers, ['sliding_attention', 'full_attention']);
    const slides = windows
      ? windows.includes('sliding_attention')
      : config.raw('sliding_window') !== null && config.whole('max_window_layers', 62) < keys.layers;
    return llamaLine(keys, {
      kinds: [sparse, llamaLayer(keys, options)],
      order: denseFirst(config, keys.layers, 0),
      tied: config.flag('tie_word_embeddings', false),
      masks: slides ? 2 : 1,
      peft: noPeftDefaults,
    });
  },
};
