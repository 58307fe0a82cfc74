import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere } from './bert.ts';
import { activation, add, attention, call, heads, hiddenNorm, linear, noPeftDefaults, norm } from './parts.ts';

export const distilbert: Architecture = {
  modelTypes: ['distilbert'],
  source: 'transformers 5.17 models/distilbert/modeling_distilbert.py',
  describe: (config) => {
    const size = config.count(['dim', 'hidden_size'], 768);
    const count = config.count(['n_heads', 'num_attention_heads'], 12);
    const inner = config.count('hidden_dim', 3072);
    const layers = config.count(['n_layers', 'num_hidden_layers'], 6);
    const vocabSize = config.count('vocab_size', 30522);
    const positions = config.count('max_position_embeddings', 512);
    const fn = config.activation('activation', 'gelu');
    const p = config.number('dropout', 0.1);
    config.divisible(size, 'dim', count, 'n_heads');
    const shape = {
      hiddenSize: size,
      heads: count,
      kvHeads: count,
      headDim: Math.floor(size / count),
      dropout: config.number('attention_dropout', 0.1),
      eager: 'bare' as const,
    };
    const project = (name: string, state: string): Op[] => [
      linear(name, 'hidden_states', state, size, size, true),
      heads(state, state),
    ];
    const layer: readonly Op[] = [
      call('attention', { hidden_states: 'hidden_states' }, { attn_output: 'attention_output', attn_weights: '_' }, [
        ...project('q_lin', 'query_states'),
        ...project('k_lin', 'key_states'),
        ...project('v_lin', 'value_states'),
        { ...attention(shape), mask: 'padding' },
        linear('out_lin', 'attn_output', 'attn_output', size, size, true),
      ]),
      add('attention_output', 'hidden_states', '$sum'),
      norm('sa_layer_norm', '$sum', 'attention_output', size, 'layer'),
      call('ffn', { attention_output: 'input' }, { x: 'ffn_output' }, [
        linear('lin1', 'input', 'x', size, inner, true),
        activation(fn, 'x', 'x'),
        linear('lin2', 'x', 'x', inner, size, true),
        ...dropWhere(p, 'x'),
      ]),
      add('ffn_output', 'attention_output', '$sum'),
      norm('output_layer_norm', '$sum', 'ffn_output', size, 'layer'),
      { op: 'assign', input: 'ffn_output', output: 'hidden_states' },
      { op: 'drop', names: ['ffn_output', 'attention_output'] },
    ];
    return {
      hiddenSize: size,
      vocabSize,
      form: 'masked',
      layersPath: 'distilbert.transformer.layer',
      rootPath: 'distilbert',
      embedding: [
        call('embeddings', {}, { embeddings: 'hidden_states' }, [
          {
            op: 'embedding',
            name: 'word_embeddings',
            rows: vocabSize,
            size,
            by: 'tokens',
            output: 'inputs_embeds',
          },
          {
            op: 'embedding',
            name: 'position_embeddings',
            rows: positions,
            size,
            by: 'positions',
            output: 'position_embeddings',
          },
          add('inputs_embeds', 'position_embeddings', 'embeddings'),
          norm('LayerNorm', 'embeddings', 'embeddings', size, 'layer'),
          ...dropWhere(p, 'embeddings'),
        ]),
        { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
      ],
      kinds: [layer],
      layers: new Array<number>(layers).fill(0),
      final: [],
      head: {
        name: 'vocab_projector',
        bias: true,
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
        transform: [
          linear('vocab_transform', 'hidden_states', 'hidden_states', size, size, true),
          activation(fn, 'hidden_states', 'hidden_states'),
          hiddenNorm('vocab_layer_norm', size, 'layer'),
        ],
      },
      classifier: {
        ops: [
          { op: 'first_token', size, input: 'hidden_states', output: 'pooled_output' },
          linear('pre_classifier', 'pooled_output', 'pooled_output', size, size, true),
          activation('relu', 'pooled_output', 'pooled_output'),
          ...dropWhere(config.number('seq_classif_dropout', 0.2), 'pooled_output'),
          linear('classifier', 'pooled_output', 'logits', size, 2, true),
        ],
      },
      rotaryTables: undefined,
      masks: 1,
      paddingMasks: true,
      bufferBytes: positions * 8,
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
