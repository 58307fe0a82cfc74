import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { add, attention, call, dropout, heads, hiddenNorm, linear, peftDefaults, plainMlp, split } from './parts.ts';

export const gpt2: Architecture = {
  // GPT-SW3 is GPT-2 under a name of its own.
  modelTypes: ['gpt2', 'gpt-sw3'],
  source: 'transformers 5.17 models/gpt2/modeling_gpt2.py',
  describe: (config) => {
    const hiddenSize = config.count(['n_embd', 'hidden_size'], 768);
    const headCount = config.count(['n_head', 'num_attention_heads'], 12);
    const layers = config.count(['n_layer', 'num_hidden_layers'], 12);
    const positions = config.count(['n_positions', 'max_position_embeddings'], 1024);
    const vocabSize = config.count('vocab_size', 50257);
    const inner = config.count('n_inner', 4 * hiddenSize);
    const fn = config.activation('activation_function', 'gelu_new');
    const residual = config.number('resid_pdrop', 0.1);
    const embedding = config.number('embd_pdrop', 0.1);
    config.divisible(hiddenSize, 'n_embd', headCount, 'n_head');
    if (config.flag('add_cross_attention', false)) config.refuse('a GPT-2 with cross-attention is not described');
    if (config.flag('reorder_and_upcast_attn', false)) config.refuse('reorder_and_upcast_attn is not described');
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim: Math.floor(hiddenSize / headCount),
      dropout: config.number('attn_pdrop', 0.1),
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
    const layer: readonly Op[] = [
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      hiddenNorm('ln_1', hiddenSize, 'layer'),
      block,
      add('attn_output', 'residual', 'hidden_states'),
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      hiddenNorm('ln_2', hiddenSize, 'layer'),
      { ...mlp, results: { hidden_states: 'feed_forward_hidden_states' } },
      add('residual', 'feed_forward_hidden_states', 'hidden_states'),
    ];
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
      kinds: [layer],
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
      bufferBytes: 0,
      alibi: false,
      peft: peftDefaults(['c_attn'], ['c_attn', 'mlp.c_proj'], ['mlp.c_proj']),
    };
  },
};
