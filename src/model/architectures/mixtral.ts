import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, moe, peftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const mixtral: Architecture = {
  modelTypes: ['mixtral'],
  source: 'transformers 5.17 models/mixtral/modeling_mixtral.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 32000,
    });
    if (config.number('router_jitter_noise', 0) > 0) config.refuse('router_jitter_noise is not described');
    const layer = preNormLayer(
      { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape) },
      {
        norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
        block: moe({
          name: 'mlp',
          router: 'gate',
          hiddenSize: keys.hiddenSize,
          intermediateSize: keys.intermediateSize,
          experts: config.count(['num_local_experts', 'num_experts'], 8),
          expertsPerToken: config.count('num_experts_per_tok', 2),
          normalise: true,
          targetNames: { router: 'gate', gate: 'w1', up: 'w3', down: 'w2' },
          castWeights: false,
          activation: keys.activation,
        }),
      },
    );
    return llamaLine(keys, {
      kinds: [layer],
      tied: config.flag('tie_word_embeddings', false),
      // PEFT looks its own list up after the experts' names were replaced, and finds none.
      peft: peftDefaults(['q_proj', 'v_proj'], ['k_proj', 'v_proj', 'w2'], ['w2']),
    });
  },
};
