import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { graniteHalf, scaledTokens } from './granite.ts';
import { GRANITE_MOE, graniteExperts, sharedMlp } from './granite-moe.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { mamba2Mixer, readMamba2Keys, WITHOUT_MAMBA_SSM } from './mamba2.ts';
import { add, noPeftDefaults, selfAttention } from './parts.ts';

export const graniteHybrid: Architecture = {
  modelTypes: ['granitemoehybrid'],
  source: 'transformers 5.17 models/granitemoehybrid/modeling_granitemoehybrid.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, GRANITE_MOE);
    const rope = config.raw('position_embedding_type') === 'rope';
    const bias = config.flag('attention_bias', false);
    const mixers = [
      mamba2Mixer(readMamba2Keys(config, keys), 'mamba'),
      selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, rotary: rope }),
    ];
    const shared = config.count('shared_intermediate_size', 1024);
    const block: readonly Op[] =
      config.whole('num_local_experts', 8) === 0
        ? [sharedMlp(keys, shared)]
        : [
            graniteExperts(config, keys, 'moe_hidden_states'),
            sharedMlp(keys, shared, '$shared'),
            add('moe_hidden_states', '$shared', 'hidden_states'),
          ];
    const types = config.layerNames('layer_types', keys.layers, [
      'mamba',
      'linear_attention',
      'attention',
      'full_attention',
    ]);
    const line = llamaLine(keys, {
      kinds: mixers.map((mixer) => [
        ...graniteHalf(keys, 'input_layernorm', [mixer]),
        ...graniteHalf(keys, 'post_attention_layernorm', block),
      ]),
      order: Array.from({ length: keys.layers }, (_, index) =>
        types?.[index]?.endsWith('attention') && types[index] !== 'linear_attention' ? 1 : 0,
      ),
      tied: config.flag('tie_word_embeddings', false),
      scaledLogits: true,
      embeddingOps: scaledTokens(keys),
      peft: noPeftDefaults,
    });
    config.assumptions.push(WITHOUT_MAMBA_SSM);
    return rope ? line : { ...line, rotaryTables: undefined, bufferBytes: 0 };
  },
};
