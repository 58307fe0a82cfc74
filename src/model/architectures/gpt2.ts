import type { Architecture } from './architecture.ts';
import { gpt2Line, readGpt2Keys } from './gpt2-line.ts';
import { attention, call, dropout, heads, linear, peftDefaults, plainMlp, split } from './parts.ts';

export const gpt2: Architecture = {
  // GPT-SW3 is GPT-2 under a name of its own.
  modelTypes: ['gpt2', 'gpt-sw3'],
  source: 'transformers 5.17 models/gpt2/modeling_gpt2.py',
  describe: (config) => {
    const keys = readGpt2Keys(config, 'gelu_new');
    const { hiddenSize, headCount, inner, fn, residual } = keys;
    if (config.flag('add_cross_attention', false)) config.refuse('a GPT-2 with cross-attention is not described');
    if (config.flag('reorder_and_upcast_attn', false)) config.refuse('reorder_and_upcast_attn is not described');
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim: Math.floor(hiddenSize / headCount),
      dropout: keys.attention,
      eager: 'plain' as const,
    };
    const block = call('attn', { hidden_states: 'hidden_states' }, { attn_output: 'attn_output', attn_weights: '_' }, [
      linear('c_attn', 'hidden_states', '$qkv', hiddenSize, 3 * hiddenSize, true, 'conv1d'),
      split('$qkv', [
        ['query_states', hiddenSize],
        ['key_states', hiddenSize],
        ['value_states', hiddenSize],
      ]),
      heads('key_states', 'key_states'),
      heads('value_states', 'value_states'),
      heads('query_states', 'query_states'),
      attention(shape),
      linear('c_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize, true, 'conv1d'),
      ...(residual > 0 ? [dropout(residual, 'attn_output', 'attn_output')] : []),
    ]);
    const mlp = plainMlp(['c_fc', 'c_proj'], hiddenSize, inner, fn, { bias: true, form: 'conv1d', dropout: residual });
    return {
      ...gpt2Line({ ...keys, block, mlp, tied: config.flag('tie_word_embeddings', true) }),
      bufferBytes: 0,
      peft: peftDefaults(['c_attn'], ['c_attn', 'mlp.c_proj'], ['mlp.c_proj']),
    };
  },
};
