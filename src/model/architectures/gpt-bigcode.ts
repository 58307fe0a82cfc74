import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { gpt2Line, readGpt2Keys } from './gpt2-line.ts';
import { attention, call, dropout, heads, linear, peftDefaults, plainMlp, split } from './parts.ts';

export const gptBigcode: Architecture = {
  modelTypes: ['gpt_bigcode'],
  source: 'transformers 5.17 models/gpt_bigcode/modeling_gpt_bigcode.py',
  describe: (config) => {
    const keys = readGpt2Keys(config, 'gelu_pytorch_tanh');
    const { hiddenSize, headCount, positions, inner, fn, residual } = keys;
    const multiQuery = config.flag('multi_query', true);
    if (config.flag('add_cross_attention', false)) config.refuse('a GPTBigCode with cross-attention is not described');
    const headDim = Math.floor(hiddenSize / headCount);
    const kv = multiQuery ? headDim : hiddenSize;
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: multiQuery ? 1 : headCount,
      headDim,
      dropout: keys.attention,
    };
    const parts = [
      ['query_states', hiddenSize],
      ['key_states', kv],
      ['value_states', kv],
    ] as const;
    const project = linear('c_attn', 'hidden_states', '$qkv', hiddenSize, hiddenSize + 2 * kv, true);
    // With one key head the parts are split first and the queries viewed as heads, else the heads are split.
    const divided: Op[] = multiQuery
      ? [project, split('$qkv', parts), heads('query_states', 'query_states')]
      : [project, heads('$qkv', '$heads'), split('$heads', parts, 'chunk_heads')];
    const block = call('attn', { hidden_states: 'hidden_states' }, { attn_output: 'attn_output', attn_weights: '_' }, [
      ...divided,
      attention(shape),
      linear('c_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize, true),
      ...(residual > 0 ? [dropout(residual, 'attn_output', 'attn_output')] : []),
    ]);
    const mlp = plainMlp(['c_fc', 'c_proj'], hiddenSize, inner, fn, { bias: true, dropout: residual });
    return {
      ...gpt2Line({ ...keys, block, mlp, tied: config.flag('tie_word_embeddings', true) }),
      // The model's own causal mask, one byte a pair of positions.
      bufferBytes: positions ** 2,
      peft: peftDefaults(['c_attn'], ['c_attn', 'mlp.c_proj'], ['mlp.c_proj']),
    };
  },
};
