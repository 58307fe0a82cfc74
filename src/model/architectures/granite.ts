import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { add, gatedMlp, hiddenNorm, noPeftDefaults, selfAttention } from './parts.ts';

/** Norm, block, and the block's result multiplied by a number before it is added. */
export const graniteHalf = (keys: LlamaLike, normName: string, inner: readonly Op[]): readonly Op[] => [
  { op: 'assign', input: 'hidden_states', output: 'residual' },
  hiddenNorm(normName, keys.hiddenSize),
  ...inner,
  { op: 'scale', input: 'hidden_states', output: '$scaled' },
  add('residual', '$scaled', 'hidden_states'),
];

/** Token embedding times a number. */
export const scaledTokens = (keys: LlamaLike): readonly Op[] => [
  {
    op: 'embedding',
    name: 'embed_tokens',
    rows: keys.vocabSize,
    size: keys.hiddenSize,
    by: 'tokens',
    output: '$looked',
  },
  { op: 'scale', input: '$looked', output: 'inputs_embeds' },
  { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
];

export const granite: Architecture = {
  modelTypes: ['granite'],
  source: 'transformers 5.17 models/granite/modeling_granite.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, { hidden: 4096, intermediate: 11008, layers: 32, heads: 32, vocab: 32000 });
    const bias = config.flag('attention_bias', false);
    const block = selfAttention(keys.shape, { qkvBias: bias, outputBias: bias });
    const mlp = gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation, config.flag('mlp_bias', false));
    return llamaLine(keys, {
      kinds: [
        [...graniteHalf(keys, 'input_layernorm', [block]), ...graniteHalf(keys, 'post_attention_layernorm', [mlp])],
      ],
      tied: config.flag('tie_word_embeddings', false),
      scaledLogits: true,
      embeddingOps: scaledTokens(keys),
      peft: noPeftDefaults,
    });
  },
};
