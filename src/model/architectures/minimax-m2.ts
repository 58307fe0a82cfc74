import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, moe, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const minimaxM2: Architecture = {
  modelTypes: ['minimax_m2'],
  source: 'transformers 5.17 models/minimax_m2/modeling_minimax_m2.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 3072,
      intermediate: 1536,
      layers: 62,
      heads: 48,
      kvHeads: 8,
      headDim: 128,
      vocab: 200064,
    });
    if (config.number('router_jitter_noise', 0) > 0) config.refuse('router_jitter_noise is not described');
    const factor = config.rotaryFactor(['partial_rotary_factor'], 1);
    const given = config.has('rotary_dim') ? config.count('rotary_dim', keys.shape.headDim) : undefined;
    const rotaryDim = given ?? Math.floor(keys.shape.headDim * factor);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: selfAttention(keys.shape, { projectionNorm: 'rms', rotaryDim, alwaysJoin: true }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
            block: moe({
              name: 'mlp',
              router: 'gate',
              hiddenSize: keys.hiddenSize,
              intermediateSize: keys.intermediateSize,
              experts: config.count(['num_local_experts', 'num_experts'], 256),
              expertsPerToken: config.count('num_experts_per_tok', 8),
              normalise: true,
              routing: { form: 'sigmoid', corrected: true, wide: true },
              targetNames: { router: 'gate', gate: 'w1', up: 'w3', down: 'w2' },
              castWeights: false,
              activation: keys.activation,
            }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
