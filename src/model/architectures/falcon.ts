import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import {
  activation,
  add,
  attention,
  call,
  dropout,
  heads,
  hiddenNorm,
  linear,
  norm,
  peftDefaults,
  rotary,
  rotaryBufferBytes,
  split,
} from './parts.ts';

export const falcon: Architecture = {
  modelTypes: ['falcon', 'RefinedWebModel', 'RefinedWeb'],
  source: 'transformers 5.17 models/falcon/modeling_falcon.py',
  describe: (config, modelType) => {
    const hiddenSize = config.count('hidden_size', 4544);
    const headCount = config.count(['num_attention_heads', 'n_head'], 71);
    const layers = config.count(['num_hidden_layers', 'n_layer'], 32);
    const vocabSize = config.count('vocab_size', 65024);
    const inner = config.count('ffn_hidden_size', 4 * hiddenSize);
    const bias = config.flag('bias', false);
    const newDecoder = config.flag('new_decoder_architecture', modelType === 'RefinedWeb');
    const multiQuery = config.flag('multi_query', true);
    const parallel = config.flag('parallel_attn', true);
    const fn = config.activation('activation', 'gelu');
    const p = config.number('hidden_dropout', 0);
    config.divisible(hiddenSize, 'hidden_size', headCount, 'num_attention_heads');
    const alibi = config.flag('alibi', false);
    const attentionDropout = config.number('attention_dropout', 0);
    const headDim = Math.floor(hiddenSize / headCount);
    const declared = config.count(['num_kv_heads', 'n_head_kv'], headCount);
    // The new architecture copies keys and values out to every query head, the multi-query one has a single key head.
    const kvHeads = newDecoder ? headCount : multiQuery ? 1 : headCount;
    const projected = newDecoder
      ? (declared * 2 + headCount) * headDim
      : multiQuery
        ? hiddenSize + 2 * headDim
        : 3 * hiddenSize;
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads,
      headDim,
      // Only the way with ALiBi drops attention weights.
      dropout: alibi ? attentionDropout : 0,
      eager: alibi ? ('biased_in_place' as const) : ('in_place' as const),
      repeats: false,
    };
    const storedKv = newDecoder ? declared * headDim : kvHeads * headDim;
    const block = call(
      'self_attention',
      { attention_layernorm_out: 'hidden_states' },
      { attn_output: 'attention_output', attn_weights: 'attn_weights' },
      [
        linear('query_key_value', 'hidden_states', 'fused_qkv', hiddenSize, projected, bias, 'matmul'),
        split(
          'fused_qkv',
          [
            ['query_states', hiddenSize],
            ['key_states', storedKv],
            ['value_states', storedKv],
          ],
          newDecoder || multiQuery ? 'copies' : 'slices',
        ),
        ...(newDecoder ? ungroup(headCount / declared) : []),
        heads('query_states', 'query_states'),
        heads('key_states', 'key_states'),
        heads('value_states', 'value_states'),
        ...(alibi ? [] : [rotary(shape)]),
        attention(shape),
        linear('dense', 'attn_output', 'attn_output', hiddenSize, hiddenSize, bias, 'matmul'),
      ],
    );
    const mlp = call('mlp', { mlp_layernorm_out: 'x' }, { x: 'mlp_output' }, [
      linear('dense_h_to_4h', 'x', '$wide', hiddenSize, inner, bias, 'matmul'),
      activation(fn, '$wide', 'x'),
      linear('dense_4h_to_h', 'x', 'x', inner, hiddenSize, bias, 'matmul'),
    ]);
    const twoNorms = newDecoder && config.count('num_ln_in_parallel_attn', 2) === 2;
    const drop = (name: string): Op[] => (p > 0 ? [dropout(p, name, name)] : []);
    const norms: Op[] = twoNorms
      ? [
          norm('ln_attn', 'hidden_states', 'attention_layernorm_out', hiddenSize, 'layer'),
          norm('ln_mlp', 'hidden_states', 'mlp_layernorm_out', hiddenSize, 'layer'),
        ]
      : [norm('input_layernorm', 'hidden_states', 'attention_layernorm_out', hiddenSize, 'layer')];
    const between: Op[] = twoNorms
      ? []
      : parallel || newDecoder
        ? [{ op: 'assign', input: 'attention_layernorm_out', output: 'mlp_layernorm_out' }]
        : [
            ...(attentionDropout > 0 ? [dropout(attentionDropout, 'attention_output', '$dropped')] : []),
            add('residual', attentionDropout > 0 ? '$dropped' : 'attention_output', 'residual'),
            norm('post_attention_layernorm', 'residual', 'mlp_layernorm_out', hiddenSize, 'layer'),
          ];
    const layer: Op[] = [
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      ...norms,
      block,
      ...between,
      mlp,
      ...(parallel || newDecoder
        ? [{ op: 'add_in_place', a: 'mlp_output', b: 'attention_output', output: 'mlp_output' } as const]
        : []),
      ...drop('mlp_output'),
      add('residual', 'mlp_output', 'hidden_states'),
    ];
    return {
      hiddenSize,
      vocabSize,
      layersPath: 'transformer.h',
      embedding: [
        {
          op: 'embedding',
          name: 'word_embeddings',
          rows: vocabSize,
          size: hiddenSize,
          by: 'tokens',
          output: 'inputs_embeds',
        },
        { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
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
      rotaryTables: { dim: headDim, pairs: 1 },
      masks: 1,
      bufferBytes: rotaryBufferBytes(headDim),
      namesWeights: true,
      alibi,
      ...(alibi ? { maskHeads: headCount } : {}),
      peft: peftDefaults(['query_key_value'], ['query_key_value', 'dense_4h_to_h'], ['dense_4h_to_h']),
    };
  },
};

/** `broadcast_to(query.shape)` and `flatten`: keys and values become real copies for every query head. */
const ungroup = (times: number): Op[] => [
  { op: 'repeat', input: 'key_states', output: 'key_states', times },
  { op: 'repeat', input: 'value_states', output: 'value_states', times },
];
