import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { call, hiddenNorm, linear, moe, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const phimoe: Architecture = {
  modelTypes: ['phimoe'],
  source: 'transformers 5.17 models/phimoe/modeling_phimoe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 6400,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 32064,
    });
    if (config.number('input_jitter_noise', 0) > 0) config.refuse('input_jitter_noise is not described');
    const experts = config.count(['num_local_experts', 'num_experts'], 16);
    const bias = config.flag('attention_bias', false);
    const block = call('mlp', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
      linear('router', 'hidden_states', 'router_logits', keys.hiddenSize, experts),
      moe({
        name: '',
        router: 'router',
        logits: 'router_logits',
        hiddenSize: keys.hiddenSize,
        intermediateSize: keys.intermediateSize,
        experts,
        // The router is written for two, whatever the file says.
        expertsPerToken: 2,
        normalise: false,
        routing: { form: 'sparse_mixer' },
        targetNames: undefined,
        castWeights: false,
        activation: keys.activation,
      }),
    ]);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize, 'layer'),
            block: selfAttention(keys.shape, { qkvBias: bias, outputBias: bias }),
          },
          { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize, 'layer'), block },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: 'layer',
      normBias: true,
      headBias: config.flag('lm_head_bias', false),
      // The router is a linear layer that hands back a tuple.
      peft: { ...noPeftDefaults, refused: ['router'] },
    });
  },
};
