import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { dropout, embedTokens, hiddenNorm, noPeftDefaults, plainMlp, preNormLayer, selfAttention } from './parts.ts';

export const starcoder2: Architecture = {
  modelTypes: ['starcoder2'],
  source: 'transformers 5.17 models/starcoder2/modeling_starcoder2.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 3072,
      intermediate: 12288,
      layers: 30,
      heads: 24,
      kvHeads: 2,
      vocab: 49152,
      activation: 'gelu_pytorch_tanh',
    });
    const { hiddenSize, vocabSize } = keys;
    const bias = config.flag('use_bias', true);
    const residual = config.number('residual_dropout', 0);
    const embedding = config.number('embedding_dropout', 0);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', hiddenSize, 'layer'),
            block: selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, outputDropout: residual }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', hiddenSize, 'layer'),
            block: plainMlp(['c_fc', 'c_proj'], hiddenSize, keys.intermediateSize, keys.activation, {
              bias,
              dropout: residual,
            }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', true),
      norm: 'layer',
      embeddingOps: [
        ...embedTokens('embed_tokens', vocabSize, hiddenSize),
        ...(embedding > 0 ? [dropout(embedding, 'hidden_states', 'hidden_states')] : []),
      ],
      peft: noPeftDefaults,
    });
  },
};
