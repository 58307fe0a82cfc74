import type { ConfigReader } from '../config-reader.ts';
import type { Activation, EmbeddingOp, Op, Stack } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere } from './bert.ts';
import {
  activation,
  add,
  attention,
  call,
  dropout,
  heads,
  linear,
  multiply,
  noPeftDefaults,
  norm,
  peftDefaults,
} from './parts.ts';

interface T5Keys {
  readonly size: number;
  readonly inner: number;
  readonly heads: number;
  readonly headDim: number;
  readonly buckets: number;
  readonly vocabSize: number;
  readonly dropout: number;
  readonly fn: Activation;
  readonly gated: boolean;
  /** UMT5: every layer has a table of distances of its own; else the first one's is everybody's. */
  readonly biasEverywhere: boolean;
}

function readKeys(config: ConfigReader, modelType: string): T5Keys {
  const t5 = modelType === 't5';
  const said = config.raw('feed_forward_proj') ?? (t5 ? 'relu' : 'gated-gelu');
  const projection = typeof said === 'string' ? said : '';
  const gated = projection.startsWith('gated-');
  const name = projection.replace(/^gated-/, '');
  return {
    size: config.count(['d_model', 'hidden_size'], 512),
    inner: config.count('d_ff', t5 ? 2048 : 1024),
    heads: config.count(['num_heads', 'num_attention_heads'], t5 ? 8 : 6),
    headDim: config.count('d_kv', 64),
    buckets: config.count('relative_attention_num_buckets', 32),
    vocabSize: config.count('vocab_size', t5 ? 32128 : 250112),
    dropout: config.number('dropout_rate', 0.1),
    fn: projection === 'gated-gelu' ? 'gelu_new' : config.knownActivation('feed_forward_proj', name),
    gated,
    biasEverywhere: modelType === 'umt5',
  };
}

const rms = (name: string, input: string, output: string, size: number): Op =>
  norm(name, input, output, size, 'rms_t5');

/** Projections without bias, scores that are not scaled, and a bias by distance. */
function attend(keys: T5Keys, name: string, cross: boolean, bias: 'own' | 'given', decoder: boolean): Op {
  const { size, heads: count, headDim } = keys;
  const inner = count * headDim;
  const source = cross ? 'key_value_states' : 'hidden_states';
  const made: Op = {
    op: 'position_bias',
    name: 'relative_attention_bias',
    heads: count,
    buckets: cross ? 0 : keys.buckets,
    keys: source,
    keySize: size,
    output: 'position_bias',
  };
  const biasName = cross ? 'encoder_decoder_position_bias' : 'position_bias';
  const args = {
    normed_hidden_states: 'hidden_states',
    ...(cross ? { encoder_hidden_states: 'key_value_states' } : {}),
    ...(bias === 'given' ? { [biasName]: 'position_bias' } : {}),
  };
  return call(
    name,
    args,
    {
      attn_output: 'attention_output',
      position_bias: biasName,
      attn_weights: 'attn_weights',
    },
    [
      linear('q', 'hidden_states', 'query_states', size, inner),
      heads('query_states', 'query_states'),
      linear('k', source, 'key_states', size, inner),
      heads('key_states', 'key_states'),
      linear('v', source, 'value_states', size, inner),
      heads('value_states', 'value_states'),
      ...(bias === 'own' ? [made] : []),
      {
        ...attention({ hiddenSize: size, heads: count, kvHeads: count, headDim, dropout: keys.dropout, eager: 'bare' }),
        mask: decoder && !cross ? 'causal' : 'padding',
        bias: 'position_bias',
      },
      linear('o', 'attn_output', 'attn_output', inner, size),
    ],
  );
}

/** Norm, attention, dropout, sum: the names last until the module's forward ends. */
const attentionLayer = (keys: T5Keys, block: Op): readonly Op[] => [
  rms('layer_norm', 'hidden_states', 'normed_hidden_states', keys.size),
  block,
  ...dropped(keys, 'attention_output', [add('hidden_states', '$dropped', 'hidden_states')]),
];

function dropped(keys: T5Keys, input: string, then: readonly Op[]): readonly Op[] {
  return [
    keys.dropout > 0 ? dropout(keys.dropout, input, '$dropped') : { op: 'assign', input, output: '$dropped' },
    ...then,
  ];
}

function feedForwardLayer(keys: T5Keys): readonly Op[] {
  const { size, inner, fn } = keys;
  const ops: Op[] = keys.gated
    ? [
        linear('wi_0', 'hidden_states', '$gate', size, inner),
        activation(fn, '$gate', 'hidden_gelu'),
        linear('wi_1', 'hidden_states', 'hidden_linear', size, inner),
        multiply('hidden_gelu', 'hidden_linear', 'hidden_states'),
      ]
    : [linear('wi', 'hidden_states', 'hidden_states', size, inner), activation(fn, 'hidden_states', 'hidden_states')];
  const wo = { ...linear('wo', 'hidden_states', 'hidden_states', inner, size), keptWide: true };
  return [
    rms('layer_norm', 'hidden_states', 'forwarded_states', size),
    call('DenseReluDense', { forwarded_states: 'hidden_states' }, { hidden_states: 'forwarded_states' }, [
      ...ops,
      ...dropWhere(keys.dropout, 'hidden_states'),
      { op: 'cast', input: 'hidden_states', output: 'hidden_states', like: wo },
      wo,
    ]),
    ...dropped(keys, 'forwarded_states', [add('hidden_states', '$dropped', 'hidden_states')]),
  ];
}

function block(keys: T5Keys, decoder: boolean, first: boolean): readonly Op[] {
  const own = first || keys.biasEverywhere;
  const named = (index: number, ops: readonly Op[], args: readonly string[], results: readonly string[]): Op =>
    call(
      `layer.${index}`,
      pairs(['hidden_states', ...args]),
      { ...pairs(['hidden_states', ...results]), attn_weights: '_' },
      ops,
    );
  const selfBias = own ? [] : ['position_bias'];
  const crossBias = own ? [] : ['encoder_decoder_position_bias'];
  return [
    named(
      0,
      attentionLayer(keys, attend(keys, 'SelfAttention', false, own ? 'own' : 'given', decoder)),
      selfBias,
      keys.biasEverywhere ? [] : ['position_bias'],
    ),
    ...(decoder
      ? [
          named(
            1,
            attentionLayer(keys, attend(keys, 'EncDecAttention', true, own ? 'own' : 'given', decoder)),
            ['encoder_hidden_states', ...crossBias],
            keys.biasEverywhere ? [] : ['encoder_decoder_position_bias'],
          ),
        ]
      : []),
    named(decoder ? 2 : 1, feedForwardLayer(keys), [], []),
  ];
}

const pairs = (names: readonly string[]): Record<string, string> => Object.fromEntries(names.map((n) => [n, n]));

function stack(keys: T5Keys, path: string, decoder: boolean, layers: number): Stack {
  const table: EmbeddingOp = {
    op: 'embedding',
    name: decoder ? 'embed_tokens' : 'shared',
    rows: keys.vocabSize,
    size: keys.size,
    by: 'tokens',
    output: 'inputs_embeds',
    ...(decoder ? { shared: true } : {}),
  };
  return {
    hiddenSize: keys.size,
    layersPath: `${path}.block`,
    embedding: [table, ...dropWhere(keys.dropout, 'inputs_embeds', 'hidden_states')].concat(
      keys.dropout > 0 ? [] : [{ op: 'assign', input: 'inputs_embeds', output: 'hidden_states' }],
    ),
    kinds: keys.biasEverywhere
      ? [block(keys, decoder, true)]
      : [block(keys, decoder, true), block(keys, decoder, false)],
    layers: Array.from({ length: layers }, (_, i) => (i === 0 || keys.biasEverywhere ? 0 : 1)),
    carried: keys.biasEverywhere ? [] : ['position_bias', 'encoder_decoder_position_bias'],
    final: [
      rms('final_layer_norm', 'hidden_states', 'hidden_states', keys.size),
      ...dropWhere(keys.dropout, 'hidden_states'),
    ],
    rotaryTables: undefined,
    masks: 1,
    paddingMasks: !decoder,
  };
}

export const t5: Architecture = {
  modelTypes: ['t5', 'mt5', 'umt5'],
  source: 'transformers 5.17 models/t5/modeling_t5.py, models/umt5/modeling_umt5.py',
  describe: (config, modelType) => {
    const keys = readKeys(config, modelType);
    const layers = config.count(['num_layers', 'num_hidden_layers'], modelType === 't5' ? 6 : 8);
    const classifierDropout = config.number('classifier_dropout', 0);
    return {
      ...stack(keys, 'decoder', true, config.count('num_decoder_layers', layers)),
      vocabSize: keys.vocabSize,
      form: 'seq2seq',
      encoder: { ...stack(keys, 'encoder', false, layers), output: 'encoder_hidden_states' },
      head: {
        name: 'lm_head',
        bias: false,
        // Every config of the family ties the head in transformers 5, whatever the file says.
        tied: true,
        scaled: false,
        softcap: false,
        // The states are scaled where the file does not untie the head (the first T5).
        ...(modelType === 't5' && config.raw('tie_word_embeddings') !== false
          ? { transform: [{ op: 'scale', input: 'hidden_states', output: 'hidden_states' }] }
          : {}),
      },
      classifier: {
        ops: [
          { op: 'first_token', size: keys.size, input: 'hidden_states', output: 'pooled_output' },
          call('classification_head', { pooled_output: 'pooled_output' }, { logits: 'logits' }, [
            ...dropWhere(classifierDropout, 'pooled_output'),
            linear('dense', 'pooled_output', 'pooled_output', keys.size, keys.size, true),
            activation('tanh', 'pooled_output', 'pooled_output'),
            ...dropWhere(classifierDropout, 'pooled_output'),
            linear('out_proj', 'pooled_output', 'logits', keys.size, 2, true),
          ]),
        ],
      },
      bufferBytes: 0,
      alibi: false,
      peft:
        modelType === 't5'
          ? peftDefaults(['q', 'v'], ['k', 'v', 'wo'], ['wo'])
          : modelType === 'mt5'
            ? peftDefaults(['q', 'v'], ['k', 'v', 'wi_1'], [])
            : noPeftDefaults,
    };
  },
};
