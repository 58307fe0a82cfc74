import type { ConfigReader } from '../config-reader.ts';
import type { Activation, Op, Stack } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere } from './bert.ts';
import { activation, add, attention, call, heads, hiddenNorm, linear, noPeftDefaults, peftDefaults } from './parts.ts';

interface BartKeys {
  readonly size: number;
  readonly vocabSize: number;
  readonly positions: number;
  readonly dropout: number;
  readonly attentionDropout: number;
  readonly activationDropout: number;
  readonly fn: Activation;
  readonly scaled: boolean;
  /** Norms stand before the blocks, and one after the last layer (mBART, Pegasus). */
  readonly before: boolean;
  /** A norm after the embedding (not Pegasus). */
  readonly embeddingNorm: boolean;
}

interface Side {
  readonly decoder: boolean;
  readonly layers: number;
  readonly heads: number;
  readonly inner: number;
}

function attend(keys: BartKeys, side: Side, name: string, cross: boolean): Op {
  const { size } = keys;
  const source = cross ? 'key_value_states' : 'hidden_states';
  const args = { hidden_states: 'hidden_states', ...(cross ? { encoder_hidden_states: 'key_value_states' } : {}) };
  return call(name, args, { attn_output: 'hidden_states', attn_weights: '_' }, [
    linear('q_proj', 'hidden_states', 'query_states', size, size, true),
    heads('query_states', 'query_states'),
    linear('k_proj', source, 'key_states', size, size, true),
    linear('v_proj', source, 'value_states', size, size, true),
    heads('key_states', 'key_states'),
    heads('value_states', 'value_states'),
    {
      ...attention({
        hiddenSize: size,
        heads: side.heads,
        kvHeads: side.heads,
        headDim: Math.floor(size / side.heads),
        dropout: keys.attentionDropout,
        eager: 'bare',
      }),
      mask: side.decoder && !cross ? 'causal' : 'padding',
    },
    linear('out_proj', 'attn_output', 'attn_output', size, size, true),
  ]);
}

const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };

function layer(keys: BartKeys, side: Side): readonly Op[] {
  const { size, before } = keys;
  const block = (normName: string, ops: readonly Op[]): readonly Op[] => [
    hold,
    ...(before ? [hiddenNorm(normName, size, 'layer')] : []),
    ...ops,
    ...dropWhere(keys.dropout, 'hidden_states'),
    add('residual', 'hidden_states', 'hidden_states'),
    ...(before ? [] : [hiddenNorm(normName, size, 'layer')]),
  ];
  return [
    ...block('self_attn_layer_norm', [attend(keys, side, 'self_attn', false)]),
    ...(side.decoder ? block('encoder_attn_layer_norm', [attend(keys, side, 'encoder_attn', true)]) : []),
    ...block('final_layer_norm', [
      linear('fc1', 'hidden_states', '$inner', size, side.inner, true),
      activation(keys.fn, '$inner', 'hidden_states'),
      ...dropWhere(keys.activationDropout, 'hidden_states'),
      linear('fc2', 'hidden_states', 'hidden_states', side.inner, size, true),
    ]),
  ];
}

function stack(keys: BartKeys, side: Side): Stack {
  const { size } = keys;
  const path = side.decoder ? 'model.decoder' : 'model.encoder';
  return {
    hiddenSize: size,
    layersPath: `${path}.layers`,
    embedding: [
      {
        op: 'embedding',
        name: side.decoder ? 'embed_tokens' : 'shared',
        rows: keys.vocabSize,
        size,
        by: 'tokens',
        scaled: true,
        ...(side.decoder ? { shared: true } : {}),
        output: 'inputs_embeds',
      },
      {
        op: 'embedding',
        name: 'embed_positions',
        rows: keys.positions,
        size,
        by: side.decoder ? 'positions' : 'rows',
        output: 'positions',
      },
      add('inputs_embeds', 'positions', 'hidden_states'),
      ...(keys.embeddingNorm ? [hiddenNorm('layernorm_embedding', size, 'layer')] : []),
      ...dropWhere(keys.dropout, 'hidden_states'),
    ],
    kinds: [layer(keys, side)],
    layers: new Array<number>(side.layers).fill(0),
    final: keys.before ? [hiddenNorm('layer_norm', size, 'layer')] : [],
    rotaryTables: undefined,
    masks: 1,
    paddingMasks: !side.decoder,
  };
}

function readSides(config: ConfigReader, size: number): readonly [Side, Side] {
  const side = (name: 'encoder' | 'decoder'): Side => {
    const count = config.count(`${name}_attention_heads`, 16);
    config.divisible(size, 'd_model', count, `${name}_attention_heads`);
    return {
      decoder: name === 'decoder',
      layers: config.count(`${name}_layers`, 12),
      heads: count,
      inner: config.count(`${name}_ffn_dim`, 4096),
    };
  };
  return [side('encoder'), side('decoder')];
}

export const bart: Architecture = {
  modelTypes: ['bart', 'mbart'],
  source: 'transformers 5.17 models/bart/modeling_bart.py, models/mbart/modeling_mbart.py',
  describe: (config, modelType) => {
    const size = config.count(['d_model', 'hidden_size'], 1024);
    if (!config.flag('tie_word_embeddings', true)) config.refuse('a BART with untied embeddings is not described');
    const vocabSize = config.count('vocab_size', 50265);
    const keys: BartKeys = {
      size,
      vocabSize,
      positions: config.count('max_position_embeddings', 1024) + 2,
      dropout: config.number('dropout', 0.1),
      attentionDropout: config.number('attention_dropout', 0),
      activationDropout: config.number('activation_dropout', 0),
      fn: config.activation('activation_function', 'gelu'),
      scaled: config.flag('scale_embedding', false),
      before: modelType === 'mbart',
      embeddingNorm: true,
    };
    const [encoder, decoder] = readSides(config, size);
    const classifierDropout = config.number('classifier_dropout', 0);
    return {
      ...stack(keys, decoder),
      vocabSize,
      form: 'seq2seq',
      encoder: { ...stack(keys, encoder), output: 'encoder_hidden_states' },
      head: { name: 'lm_head', bias: false, tied: true, scaled: false, softcap: false, offset: true },
      classifier: {
        ops: [
          { op: 'first_token', size, input: 'hidden_states', output: 'pooled_output' },
          call('classification_head', { pooled_output: 'pooled_output' }, { logits: 'logits' }, [
            ...dropWhere(classifierDropout, 'pooled_output'),
            linear('dense', 'pooled_output', 'pooled_output', size, size, true),
            activation('tanh', 'pooled_output', 'pooled_output'),
            ...dropWhere(classifierDropout, 'pooled_output'),
            linear('out_proj', 'pooled_output', 'logits', size, 2, true),
          ]),
        ],
      },
      // final_logits_bias, a buffer of the checkpoint.
      bufferBytes: vocabSize * 4,
      alibi: false,
      peft:
        modelType === 'bart'
          ? peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'fc2'], ['fc2'])
          : noPeftDefaults,
    };
  },
};
