import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { gatedMlp, hiddenNorm, noPeftDefaults, norm, preNormLayer, selfAttention } from './parts.ts';

/** A norm in front of the last projection of a block. */
function beforeLast<T extends { readonly ops: readonly Op[] }>(block: T, name: string, size: number): T {
  const last = block.ops.at(-1)!;
  if (last.op !== 'linear') throw new Error('the block does not end with a projection');
  return { ...block, ops: [...block.ops.slice(0, -1), norm(name, last.input, last.input, size), last] };
}

/** Llama's layers with one more norm in each block. */
export const bitnet: Architecture = {
  modelTypes: ['bitnet'],
  source: 'transformers 5.17 models/bitnet/modeling_bitnet.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2560,
      intermediate: 6912,
      layers: 30,
      heads: 20,
      kvHeads: 5,
      vocab: 128256,
      activation: 'relu2',
    });
    const bias = config.flag('attention_bias', false);
    const attend = selfAttention(keys.shape, { qkvBias: bias, outputBias: bias });
    const mlp = gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: beforeLast(attend, 'attn_sub_norm', keys.hiddenSize),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
            block: beforeLast(mlp, 'ffn_sub_norm', keys.intermediateSize),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
