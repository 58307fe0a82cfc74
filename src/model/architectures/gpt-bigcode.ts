import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { add, attention, call, dropout, heads, hiddenNorm, linear, peftDefaults, plainMlp, split } from './parts.ts';

export const gptBigcode: Architecture = {
  modelTypes: ['gpt_bigcode'],
  source: 'transformers 5.17 models/gpt_bigcode/modeling_gpt_bigcode.py',
  describe: (config) => {
    const hiddenSize = config.count(['n_embd', 'hidden_size'], 768);
    const headCount = config.count(['n_head', 'num_attention_heads'], 12);
    const layers = config.count(['n_layer', 'num_hidden_layers'], 12);
    const positions = config.count(['n_positions', 'max_position_embeddings'], 1024);
    const vocabSize = config.count('vocab_size', 50257);
    const inner = config.count('n_inner', 4 * hiddenSize);
    const fn = config.activation('activation_function', 'gelu_pytorch_tanh');
    const residual = config.number('resid_pdrop', 0.1);
    const embedding = config.number('embd_pdrop', 0.1);
    const multiQuery = config.flag('multi_query', true);
    config.divisible(hiddenSize, 'n_embd', headCount, 'n_head');
    if (config.flag('add_cross_attention', false)) config.refuse('a GPTBigCode with cross-attention is not described');
    const headDim = Math.floor(hiddenSize / headCount);
    const kv = multiQuery ? headDim : hiddenSize;
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: multiQuery ? 1 : headCount,
      headDim,
      dropout: config.number('attn_pdrop', 0.1),
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
    const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
    return {
      hiddenSize,
      vocabSize,
      layersPath: 'transformer.h',
      embedding: [
        { op: 'embedding', name: 'wte', rows: vocabSize, size: hiddenSize, by: 'tokens', output: 'inputs_embeds' },
        { op: 'embedding', name: 'wpe', rows: positions, size: hiddenSize, by: 'positions', output: 'position_embeds' },
        add('inputs_embeds', 'position_embeds', 'hidden_states'),
        ...(embedding > 0 ? [dropout(embedding, 'hidden_states', 'hidden_states')] : []),
      ],
      kinds: [
        [
          hold,
          hiddenNorm('ln_1', hiddenSize, 'layer'),
          block,
          add('attn_output', 'residual', 'hidden_states'),
          hold,
          hiddenNorm('ln_2', hiddenSize, 'layer'),
          { ...mlp, results: { hidden_states: 'feed_forward_hidden_states' } },
          add('residual', 'feed_forward_hidden_states', 'hidden_states'),
        ],
      ],
      layers: new Array<number>(layers).fill(0),
      final: [hiddenNorm('ln_f', hiddenSize, 'layer')],
      head: {
        name: 'lm_head',
        bias: false,
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
      },
      rotaryTables: undefined,
      masks: 1,
      // The model's own causal mask, one byte a pair of positions.
      bufferBytes: positions ** 2,
      alibi: false,
      peft: peftDefaults(['c_attn'], ['c_attn', 'mlp.c_proj'], ['mlp.c_proj']),
    };
  },
};
