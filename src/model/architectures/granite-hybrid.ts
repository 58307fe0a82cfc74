import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { graniteHalf, scaledTokens } from './granite.ts';
import { GRANITE_MOE, graniteExperts, sharedMlp } from './granite-moe.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { mamba2Mixer, WITHOUT_MAMBA_SSM } from './mamba2.ts';
import { add, noPeftDefaults, selfAttention } from './parts.ts';

export const graniteHybrid: Architecture = {
  modelTypes: ['granitemoehybrid'],
  source: 'transformers 5.17 models/granitemoehybrid/modeling_granitemoehybrid.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, GRANITE_MOE);
    const rope = config.raw('position_embedding_type') === 'rope';
    const bias = config.flag('attention_bias', false);
    const mambaHeads = config.count('mamba_n_heads', 128);
    const inner = config.count('mamba_expand', 2) * keys.hiddenSize;
    config.divisible(inner, 'mamba_expand * hidden_size', mambaHeads, 'mamba_n_heads');
    const mixers = [
      mamba2Mixer(
        {
          hiddenSize: keys.hiddenSize,
          heads: mambaHeads,
          headDim: inner / mambaHeads,
          groups: config.count('mamba_n_groups', 1),
          stateSize: config.count('mamba_d_state', 256),
          kernel: config.count('mamba_d_conv', 4),
          chunk: config.count('mamba_chunk_size', 256),
          bias: config.flag('mamba_proj_bias', false),
          convBias: config.flag('mamba_conv_bias', true),
          activation: keys.activation,
        },
        'mamba',
      ),
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
