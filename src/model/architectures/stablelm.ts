import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { add, dropout, gatedMlp, hiddenNorm, norm, peftDefaults, selfAttention } from './parts.ts';

export const stablelm: Architecture = {
  modelTypes: ['stablelm', 'stablelm_epoch'],
  source: 'transformers 5.17 models/stablelm/modeling_stablelm.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2560,
      intermediate: 6912,
      layers: 32,
      heads: 32,
      kvHeads: 32,
      vocab: 50304,
    });
    const { hiddenSize } = keys;
    const rotaryDim = Math.floor(keys.shape.headDim * config.rotaryFactor(['partial_rotary_factor', 'rope_pct'], 0.25));
    const p = config.number('hidden_dropout', 0);
    const block = selfAttention(keys.shape, {
      qkvBias: config.flag('use_qkv_bias', false),
      lateHeads: true,
      rotaryDim,
      alwaysJoin: true,
      ...(config.flag('qk_layernorm', false)
        ? {
            headNorm: 'layer_heads',
            headNormAfterHeads: true,
            headNormPerHead: true,
            headNormNames: ['q_layernorm', 'k_layernorm'],
          }
        : {}),
    });
    const attend = { ...block, results: { attn_output: 'self_attn_output', attn_weights: '_' } };
    const mlp = gatedMlp(hiddenSize, keys.intermediateSize, keys.activation);
    const drop: Op[] = p > 0 ? [dropout(p, 'mlp_output', 'mlp_output')] : [];
    const begin: Op[] = [
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      hiddenNorm('input_layernorm', hiddenSize, 'layer'),
      attend,
    ];
    const parallel: Op[] = [
      ...begin,
      { ...mlp, results: { down_proj: 'mlp_output' } },
      ...drop,
      add('residual', 'self_attn_output', '$sum'),
      add('$sum', 'mlp_output', 'hidden_states'),
    ];
    const serial: Op[] = [
      ...begin,
      add('residual', 'self_attn_output', 'residual'),
      norm('post_attention_layernorm', 'residual', '$normed', hiddenSize, 'layer'),
      { ...mlp, arguments: { $normed: 'x' }, results: { down_proj: 'mlp_output' } },
      ...drop,
      add('residual', 'mlp_output', 'hidden_states'),
    ];
    return llamaLine(keys, {
      kinds: [config.flag('use_parallel_residual', false) ? parallel : serial],
      tied: config.flag('tie_word_embeddings', false),
      norm: 'layer',
      rotaryDim,
      peft: peftDefaults(['q_proj', 'v_proj']),
    });
  },
};
