import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, plainMlp, preNormLayer, selfAttention } from './parts.ts';

export const nemotron: Architecture = {
  modelTypes: ['nemotron'],
  source: 'transformers 5.17 models/nemotron/modeling_nemotron.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 6144,
      intermediate: 24576,
      layers: 32,
      heads: 48,
      vocab: 256000,
      activation: 'relu2',
    });
    const { hiddenSize } = keys;
    if (!config.has('num_key_value_heads')) config.refuse('a Nemotron config has to say num_key_value_heads');
    const rotaryDim = Math.floor(
      keys.shape.headDim * config.rotaryFactor(['partial_rotary_factor', 'rope_percent'], 0.5),
    );
    const bias = config.flag('attention_bias', false);
    const form = 'layer_offset';
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', hiddenSize, form, true),
            block: selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, rotaryDim, alwaysJoin: true }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', hiddenSize, form, true),
            block: plainMlp(['up_proj', 'down_proj'], hiddenSize, keys.intermediateSize, keys.activation, {
              bias: config.flag('mlp_bias', false),
              unnamed: true,
            }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: form,
      normBias: true,
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
