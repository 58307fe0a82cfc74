import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { mamba2Mixer, readMamba2Keys, WITHOUT_MAMBA_SSM } from './mamba2.ts';
import { gatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const bamba: Architecture = {
  modelTypes: ['bamba'],
  source: 'transformers 5.17 models/bamba/modeling_bamba.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 128000,
    });
    const bias = config.flag('attention_bias', false);
    // Half of a head's features turn, whatever the file says.
    const rotaryDim = Math.floor(keys.shape.headDim / 2);
    const mixers = [
      mamba2Mixer(readMamba2Keys(config, keys), 'mamba'),
      selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, rotaryDim, alwaysJoin: true }),
    ];
    const listed = config.raw('attn_layer_indices');
    const mlp = gatedMlp(
      keys.hiddenSize,
      keys.intermediateSize,
      keys.activation,
      config.flag('mlp_bias', false),
      'feed_forward',
    );
    const line = llamaLine(keys, {
      kinds: mixers.map((block) =>
        preNormLayer(
          { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block },
          { norm: hiddenNorm('pre_ff_layernorm', keys.hiddenSize), block: mlp },
        ),
      ),
      order: Array.from({ length: keys.layers }, (_, index) =>
        Array.isArray(listed) && listed.includes(index) ? 1 : 0,
      ),
      tied: config.flag('tie_word_embeddings', false),
      rotaryDim,
      peft: noPeftDefaults,
    });
    config.assumptions.push(WITHOUT_MAMBA_SSM);
    return { ...line, final: [hiddenNorm('final_layernorm', keys.hiddenSize)] };
  },
};
