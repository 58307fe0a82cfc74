import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { embedTokens, hiddenNorm, noPeftDefaults, plainMlp, preNormLayer, selfAttention } from './parts.ts';

/** Norms without weights, one of them before the layers. */
export const nanochat: Architecture = {
  modelTypes: ['nanochat'],
  source: 'transformers 5.17 models/nanochat/modeling_nanochat.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 768,
      intermediate: 8192,
      layers: 12,
      heads: 6,
      vocab: 50304,
      activation: 'relu2',
    });
    const { hiddenSize } = keys;
    const bias = config.flag('attention_bias', false);
    const bare = (name: string): ReturnType<typeof hiddenNorm> => hiddenNorm(name, hiddenSize, 'rms_bare');
    const before: readonly Op[] = [...embedTokens('embed_tokens', keys.vocabSize, hiddenSize), bare('norm')];
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: bare('input_layernorm'),
            block: selfAttention(keys.shape, {
              qkvBias: bias,
              outputBias: bias,
              headNorm: 'rms_bare',
              headNormAfterRotary: true,
            }),
          },
          {
            norm: bare('post_attention_layernorm'),
            block: plainMlp(['fc1', 'fc2'], hiddenSize, keys.intermediateSize, keys.activation, { bias: false }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: 'rms_bare',
      softcap: config.raw('final_logit_softcapping') !== null && config.number('final_logit_softcapping', 15) > 0,
      embeddingOps: before,
      peft: noPeftDefaults,
    });
  },
};
