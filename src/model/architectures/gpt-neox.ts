import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import {
  add,
  attention,
  call,
  dropout,
  heads,
  hiddenNorm,
  linear,
  norm,
  peftDefaults,
  plainMlp,
  rotary,
  rotaryBufferBytes,
  split,
} from './parts.ts';

export const gptNeox: Architecture = {
  modelTypes: ['gpt_neox'],
  source: 'transformers 5.17 models/gpt_neox/modeling_gpt_neox.py',
  describe: (config) => {
    const hiddenSize = config.count('hidden_size', 6144);
    const headCount = config.count('num_attention_heads', 64);
    const inner = config.count('intermediate_size', 24576);
    const vocabSize = config.count('vocab_size', 50432);
    const fn = config.activation('hidden_act', 'gelu');
    const p = config.number('hidden_dropout', 0);
    const bias = config.flag('attention_bias', true);
    config.divisible(hiddenSize, 'hidden_size', headCount, 'num_attention_heads');
    const headDim = Math.floor(hiddenSize / headCount);
    const rotaryDim = Math.floor(headDim * config.rotaryFactor(['rotary_pct', 'partial_rotary_factor'], 0.25));
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim,
      dropout: config.number('attention_dropout', 0),
    };
    const drop = (name: string): Op[] => (p > 0 ? [dropout(p, name, name)] : []);
    const block = call('attention', { $normed: 'hidden_states' }, { attn_output: 'attn_output', attn_weights: '_' }, [
      linear('query_key_value', 'hidden_states', 'qkv', hiddenSize, 3 * hiddenSize, bias),
      heads('qkv', 'qkv'),
      split(
        'qkv',
        [
          ['query_states', hiddenSize],
          ['key_states', hiddenSize],
          ['value_states', hiddenSize],
        ],
        'chunk_heads',
      ),
      rotary(shape, rotaryDim, true),
      attention(shape),
      linear('dense', 'attn_output', 'attn_output', hiddenSize, hiddenSize, bias),
    ]);
    const mlp = {
      ...plainMlp(['dense_h_to_4h', 'dense_4h_to_h'], hiddenSize, inner, fn, { bias: true }),
      arguments: { $second: 'hidden_states' },
      results: { hidden_states: 'mlp_output' },
    };
    const parallel: Op[] = [
      norm('post_attention_layernorm', 'hidden_states', '$second', hiddenSize, 'layer'),
      mlp,
      ...drop('mlp_output'),
      add('mlp_output', 'attn_output', '$sum'),
      add('$sum', 'hidden_states', 'hidden_states'),
    ];
    const serial: Op[] = [
      add('attn_output', 'hidden_states', 'attn_output'),
      norm('post_attention_layernorm', 'attn_output', '$second', hiddenSize, 'layer'),
      mlp,
      ...drop('mlp_output'),
      add('mlp_output', 'attn_output', 'hidden_states'),
    ];
    return {
      hiddenSize,
      vocabSize,
      layersPath: 'gpt_neox.layers',
      embedding: [
        { op: 'embedding', name: 'embed_in', rows: vocabSize, size: hiddenSize, by: 'tokens', output: 'inputs_embeds' },
        { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
        ...drop('hidden_states'),
      ],
      kinds: [
        [
          norm('input_layernorm', 'hidden_states', '$normed', hiddenSize, 'layer'),
          block,
          ...drop('attn_output'),
          ...(config.flag('use_parallel_residual', true) ? parallel : serial),
        ],
      ],
      layers: new Array<number>(config.count('num_hidden_layers', 44)).fill(0),
      final: [hiddenNorm('final_layer_norm', hiddenSize, 'layer')],
      head: {
        name: 'embed_out',
        bias: false,
        tied: config.flag('tie_word_embeddings', false),
        scaled: false,
        softcap: false,
      },
      rotaryTables: { dim: rotaryDim, pairs: 1 },
      masks: 1,
      bufferBytes: rotaryBufferBytes(rotaryDim),
      alibi: false,
      peft: peftDefaults(['query_key_value'], ['query_key_value', 'dense_4h_to_h'], ['dense_4h_to_h']),
    };
  },
};
