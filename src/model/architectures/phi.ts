import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { add, dropout, embedTokens, hiddenNorm, peftDefaults, plainMlp, selfAttention } from './parts.ts';

export const phi: Architecture = {
  modelTypes: ['phi'],
  source: 'transformers 5.17 models/phi/modeling_phi.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2048,
      intermediate: 8192,
      layers: 24,
      heads: 32,
      vocab: 51200,
      activation: 'gelu_new',
    });
    const { hiddenSize, vocabSize, shape } = keys;
    const rotaryDim = Math.floor(shape.headDim * config.rotaryFactor(['partial_rotary_factor'], 0.5));
    const residual = config.number('resid_pdrop', 0);
    const embedding = config.number('embd_pdrop', 0);
    const drop = (name: string): Op[] => (residual > 0 ? [dropout(residual, name, name)] : []);
    const block = selfAttention(shape, {
      qkvBias: true,
      outputBias: true,
      outputName: 'dense',
      rotaryDim,
      alwaysJoin: true,
      ...(config.flag('qk_layernorm', false)
        ? { headNorm: 'layer', headNormAfterHeads: true, headNormNames: ['q_layernorm', 'k_layernorm'] }
        : {}),
    });
    const mlp = plainMlp(['fc1', 'fc2'], hiddenSize, keys.intermediateSize, keys.activation, { bias: true });
    const layer: Op[] = [
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      hiddenNorm('input_layernorm', hiddenSize, 'layer'),
      { ...block, results: { attn_output: 'attn_outputs', attn_weights: '_' } },
      ...drop('attn_outputs'),
      { ...mlp, results: { hidden_states: 'feed_forward_hidden_states' } },
      ...drop('feed_forward_hidden_states'),
      add('attn_outputs', 'feed_forward_hidden_states', '$sum'),
      add('$sum', 'residual', 'hidden_states'),
    ];
    return {
      ...llamaLine(keys, {
        kinds: [layer],
        tied: config.flag('tie_word_embeddings', false),
        headBias: true,
        rotaryDim,
        embeddingOps: [
          ...embedTokens('embed_tokens', vocabSize, hiddenSize),
          ...(embedding > 0 ? [dropout(embedding, 'inputs_embeds', 'hidden_states')] : []),
        ],
        peft: peftDefaults(['q_proj', 'v_proj', 'fc1', 'fc2'], ['q_proj', 'v_proj', 'fc2'], ['fc2']),
      }),
      final: [hiddenNorm('final_layernorm', hiddenSize, 'layer')],
    };
  },
};
