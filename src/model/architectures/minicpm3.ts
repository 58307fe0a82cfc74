import type { Architecture } from './architecture.ts';
import { scaledEmbedding } from './gemma.ts';
import { graniteHalf } from './granite.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { latentAttention, readLatentShape } from './mla.ts';
import { gatedMlp, noPeftDefaults } from './parts.ts';

/** Latent attention in layers whose blocks are multiplied by a number, as Granite's are. */
export const minicpm3: Architecture = {
  modelTypes: ['minicpm3'],
  source: 'transformers 5.17 models/minicpm3/modeling_minicpm3.py',
  describe: (config) => {
    const family = { hidden: 2560, heads: 40, intermediate: 6400, layers: 62, vocab: 73448 };
    const heads = config.count('num_attention_heads', family.heads);
    const valueDim = Math.floor(config.count('hidden_size', family.hidden) / heads);
    const latent = readLatentShape(config, family, {
      queryRank: 768,
      keyRank: 256,
      nopeDim: 64,
      ropeDim: 32,
      valueDim,
    });
    const read = readLlamaKeys(config, { ...family, headDim: latent.ropeDim });
    const keys = { ...read, shape: { ...read.shape, headDim: latent.ropeDim } };
    const mlp = gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation, config.flag('mlp_bias', false));
    return llamaLine(keys, {
      kinds: [
        [
          ...graniteHalf(keys, 'input_layernorm', [latentAttention(latent, { rotary: {} })]),
          ...graniteHalf(keys, 'post_attention_layernorm', [mlp]),
        ],
      ],
      tied: config.flag('tie_word_embeddings', true),
      embeddingOps: scaledEmbedding(keys),
      scaledLogits: true,
      extraBufferBytes: 4,
      peft: noPeftDefaults,
    });
  },
};
