import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { activation, add, attention, call, dropout, hiddenNorm, linear, norm, peftDefaults, split } from './parts.ts';

export const bloom: Architecture = {
  modelTypes: ['bloom'],
  source: 'transformers 5.17 models/bloom/modeling_bloom.py',
  describe: (config) => {
    const hiddenSize = config.count(['n_embed', 'hidden_size'], 64);
    const headCount = config.count(['n_head', 'num_attention_heads'], 8);
    const layers = config.count(['n_layer', 'num_hidden_layers'], 2);
    const vocabSize = config.count('vocab_size', 250880);
    const p = config.number('hidden_dropout', 0);
    config.divisible(hiddenSize, 'hidden_size', headCount, 'n_head');
    if (config.flag('slow_but_exact', false) && config.count('pretraining_tp', 1) > 1) {
      config.refuse('a BLOOM with slow_but_exact is not described');
    }
    const inner = 4 * hiddenSize;
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim: Math.floor(hiddenSize / headCount),
      dropout: config.number('attention_dropout', 0),
      eager: 'baddbmm' as const,
    };
    const residual = config.flag('apply_residual_connection_post_layernorm', false) ? 'layernorm_output' : undefined;
    /** `residual + dropout(x)`, inside the module that made x. */
    const addResidual = (name: string): Op[] => [
      ...(p > 0 ? [dropout(p, name, '$dropped')] : []),
      add('residual', p > 0 ? '$dropped' : name, 'sum'),
    ];
    const block = call(
      'self_attention',
      { layernorm_output: 'hidden_states', residual: 'residual' },
      { sum: 'attention_output', attn_weights: '_' },
      [
        linear('query_key_value', 'hidden_states', 'fused_qkv', hiddenSize, 3 * hiddenSize, true),
        split(
          'fused_qkv',
          [
            ['query_states', hiddenSize],
            ['key_states', hiddenSize],
            ['value_states', hiddenSize],
          ],
          'slices',
        ),
        attention(shape),
        linear('dense', 'attn_output', 'output_tensor', hiddenSize, hiddenSize, true),
        ...addResidual('output_tensor'),
      ],
    );
    const mlp = call('mlp', { layernorm_output: 'x', residual: 'residual' }, { sum: 'hidden_states' }, [
      linear('dense_h_to_4h', 'x', '$wide', hiddenSize, inner, true),
      activation('bloom_gelu', '$wide', 'x'),
      linear('dense_4h_to_h', 'x', 'intermediate_output', inner, hiddenSize, true),
      ...addResidual('intermediate_output'),
    ]);
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
        norm('word_embeddings_layernorm', 'inputs_embeds', 'hidden_states', hiddenSize, 'layer'),
      ],
      kinds: [
        [
          norm('input_layernorm', 'hidden_states', 'layernorm_output', hiddenSize, 'layer'),
          { op: 'assign', input: residual ?? 'hidden_states', output: 'residual' },
          block,
          norm('post_attention_layernorm', 'attention_output', 'layernorm_output', hiddenSize, 'layer'),
          { op: 'assign', input: residual ?? 'attention_output', output: 'residual' },
          mlp,
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
      bufferBytes: 0,
      namesWeights: true,
      alibi: true,
      kernels: [],
      peft: peftDefaults(['query_key_value'], ['query_key_value', 'mlp.dense_4h_to_h'], ['mlp.dense_4h_to_h']),
    };
  },
};
