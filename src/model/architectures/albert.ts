import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type BertKeys, bertEmbeddings, dropWhere, readBertKeys, tokenHead } from './bert.ts';
import { evenHeads } from './even-heads.ts';
import { activation, add, attention, call, heads, linear, noPeftDefaults, norm } from './parts.ts';

function layer(keys: BertKeys): readonly Op[] {
  const { hiddenSize: size, heads: count } = keys;
  const project = (name: string, state: string): Op[] => [
    linear(name, 'hidden_states', state, size, size, true),
    heads(state, state),
  ];
  const shape = evenHeads(size, count, keys.attentionDropout);
  return [
    call(
      'albert_layers.0.attention',
      { hidden_states: 'hidden_states' },
      { attn_output: 'attention_output', attn_weights: '_' },
      [
        ...project('query', 'query_states'),
        ...project('key', 'key_states'),
        ...project('value', 'value_states'),
        { ...attention(shape), mask: 'padding' },
        linear('dense', 'attn_output', 'attn_output', size, size, true),
        ...dropWhere(keys.hiddenDropout, 'attn_output'),
        add('hidden_states', 'attn_output', '$sum'),
        norm('LayerNorm', '$sum', 'attn_output', size, 'layer'),
      ],
    ),
    call('albert_layers.0', { attention_output: 'attention_output' }, { ffn_output: 'ffn_output' }, [
      linear('ffn', 'attention_output', 'ffn_output', size, keys.intermediateSize, true),
      activation(keys.fn, 'ffn_output', 'ffn_output'),
      linear('ffn_output', 'ffn_output', 'ffn_output', keys.intermediateSize, size, true),
    ]),
    add('ffn_output', 'attention_output', '$sum'),
    norm('albert_layers.0.full_layer_layer_norm', '$sum', 'hidden_states', size, 'layer'),
  ];
}

/** One layer's weights, run as often as there are layers. */
export const albert: Architecture = {
  modelTypes: ['albert'],
  source: 'transformers 5.17 models/albert/modeling_albert.py',
  describe: (config) => {
    const read = readBertKeys(config, 30000, { hidden: 4096, heads: 64, inner: 16384 });
    const keys: BertKeys = {
      ...read,
      embeddingSize: config.count('embedding_size', 128),
      fn: config.activation('hidden_act', 'gelu_new'),
      hiddenDropout: config.number('hidden_dropout_prob', 0),
      attentionDropout: config.number('attention_probs_dropout_prob', 0),
      classifierDropout: config.number('classifier_dropout_prob', 0.1),
    };
    if (config.count('num_hidden_groups', 1) > 1 || config.count('inner_group_num', 1) > 1) {
      config.refuse('an ALBERT with several groups of layers is not described');
    }
    const { hiddenSize, embeddingSize, layers } = keys;
    return {
      hiddenSize,
      vocabSize: keys.vocabSize,
      form: 'masked',
      layersPath: 'albert.encoder.albert_layer_groups',
      rootPath: 'albert',
      embedding: [
        bertEmbeddings(keys, 'positions'),
        { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
        linear(
          'encoder.embedding_hidden_mapping_in',
          'hidden_states',
          'hidden_states',
          embeddingSize,
          hiddenSize,
          true,
        ),
      ],
      kinds: [layer(keys)],
      layers: new Array<number>(layers).fill(0),
      sharesWeights: true,
      checkpoints: false,
      final: [],
      head: tokenHead(
        config,
        keys,
        { path: 'predictions', dense: 'dense', norm: 'LayerNorm', output: 'predictions.decoder', ownBias: true },
        keys.fn,
      ),
      classifier: {
        ops: [
          call('', { hidden_states: 'hidden_states' }, { pooled_output: 'pooled_output' }, [
            { op: 'first_token', size: hiddenSize, input: 'hidden_states', output: 'pooled_output' },
            linear('albert.pooler', 'pooled_output', 'pooled_output', hiddenSize, hiddenSize, true),
            activation('tanh', 'pooled_output', 'pooled_output'),
          ]),
          ...dropWhere(keys.classifierDropout, 'pooled_output'),
          linear('classifier', 'pooled_output', 'logits', hiddenSize, 2, true),
        ],
      },
      rotaryTables: undefined,
      masks: 1,
      paddingMasks: true,
      bufferBytes: 2 * keys.positions * 8,
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
