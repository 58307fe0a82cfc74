import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults, plainMlp, preNormLayer, selfAttention } from './parts.ts';

export const apertus: Architecture = {
  modelTypes: ['apertus'],
  source: 'transformers 5.17 models/apertus/modeling_apertus.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 32,
      heads: 32,
      vocab: 131072,
      activation: 'xielu',
    });
    const { hiddenSize } = keys;
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('attention_layernorm', hiddenSize),
            block: selfAttention(keys.shape, {
              qkvBias: bias,
              outputBias: bias,
              headNorm: 'rms',
              headNormAfterHeads: true,
            }),
          },
          {
            norm: hiddenNorm('feedforward_layernorm', hiddenSize),
            block: plainMlp(['up_proj', 'down_proj'], hiddenSize, keys.intermediateSize, keys.activation, {
              bias: false,
              unnamed: true,
            }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
