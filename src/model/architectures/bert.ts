import type { ConfigReader } from '../config-reader.ts';
import type { Activation, Classifier, HeadDescription, ModelDescription, Op, PeftDefaults } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { evenHeads } from './even-heads.ts';
import {
  activation,
  add,
  attention,
  call,
  dropout,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  norm,
  peftDefaults,
} from './parts.ts';

/** Dropout that is left out where it does nothing. */
export const dropWhere = (p: number, input: string, output = input): readonly Op[] =>
  p > 0 ? [dropout(p, input, output)] : [];

/** Keys of BERT and the encoders made after it. */
export interface BertKeys {
  readonly hiddenSize: number;
  readonly embeddingSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly vocabSize: number;
  readonly positions: number;
  readonly types: number;
  readonly fn: Activation;
  readonly hiddenDropout: number;
  readonly attentionDropout: number;
  readonly classifierDropout: number;
}

export function readBertKeys(
  config: ConfigReader,
  vocab: number,
  defaults = { hidden: 768, heads: 12, inner: 3072 },
): BertKeys {
  const hiddenSize = config.count('hidden_size', defaults.hidden);
  const count = config.count('num_attention_heads', defaults.heads);
  config.divisible(hiddenSize, 'hidden_size', count, 'num_attention_heads');
  if (config.flag('add_cross_attention', false)) config.refuse('an encoder with cross-attention is not described');
  const hiddenDropout = config.number('hidden_dropout_prob', 0.1);
  return {
    hiddenSize,
    embeddingSize: config.count('embedding_size', hiddenSize),
    intermediateSize: config.count('intermediate_size', defaults.inner),
    layers: config.count('num_hidden_layers', 12),
    heads: count,
    vocabSize: config.count('vocab_size', vocab),
    positions: config.count('max_position_embeddings', 512),
    types: config.count('type_vocab_size', 2),
    fn: config.activation('hidden_act', 'gelu'),
    hiddenDropout,
    attentionDropout: config.number('attention_probs_dropout_prob', 0.1),
    classifierDropout: config.number('classifier_dropout', hiddenDropout),
  };
}

/** Words, segments and positions, added, normed. `rows`: every row has positions of its own (RoBERTa, from the padding). */
export const bertEmbeddings = (keys: BertKeys, by: 'positions' | 'rows'): Op =>
  call('embeddings', {}, { embeddings: 'hidden_states' }, [
    tokenTable('word_embeddings', keys.vocabSize, keys.embeddingSize, 'tokens', 'inputs_embeds'),
    {
      ...tokenTable('token_type_embeddings', keys.types, keys.embeddingSize, 'rows', 'token_type_embeddings'),
      segments: true,
    } as Op,
    add('inputs_embeds', 'token_type_embeddings', 'embeddings'),
    tokenTable('position_embeddings', keys.positions, keys.embeddingSize, by, 'position_embeddings'),
    add('embeddings', 'position_embeddings', 'embeddings'),
    norm('LayerNorm', 'embeddings', 'embeddings', keys.embeddingSize, 'layer'),
    ...dropWhere(keys.hiddenDropout, 'embeddings'),
  ]);

export const tokenTable = (
  name: string,
  rows: number,
  size: number,
  by: 'tokens' | 'positions' | 'rows',
  output: string,
): Op => ({
  op: 'embedding',
  name,
  rows,
  size,
  by,
  output,
});

/** Dense, dropout, and the norm of the sum with what entered. */
export const outputBlock = (
  from: number,
  to: number,
  p: number,
  names: { readonly states: string; readonly entered: string; readonly result: string },
): Op =>
  call(
    'output',
    { [names.states]: 'hidden_states', [names.entered]: 'input_tensor' },
    { hidden_states: names.result },
    [
      linear('dense', 'hidden_states', 'hidden_states', from, to, true),
      ...dropWhere(p, 'hidden_states'),
      add('hidden_states', 'input_tensor', '$sum'),
      norm('LayerNorm', '$sum', 'hidden_states', to, 'layer'),
    ],
  );

/** The first half of the feed-forward block. */
export const intermediate = (size: number, inner: number, fn: Activation): Op =>
  call('intermediate', { attention_output: 'hidden_states' }, { hidden_states: 'intermediate_output' }, [
    linear('dense', 'hidden_states', 'hidden_states', size, inner, true),
    activation(fn, 'hidden_states', 'hidden_states'),
  ]);

function layer(keys: BertKeys): readonly Op[] {
  const { hiddenSize, intermediateSize, heads: count } = keys;
  const project = (name: string, state: string): Op[] => [
    linear(name, 'hidden_states', state, hiddenSize, hiddenSize, true),
    heads(state, state),
  ];
  const attend = call(
    'self',
    { hidden_states: 'hidden_states' },
    { attn_output: 'attention_output', attn_weights: 'attn_weights' },
    [
      ...project('query', 'query_states'),
      ...project('key', 'key_states'),
      ...project('value', 'value_states'),
      {
        ...attention(evenHeads(hiddenSize, count, keys.attentionDropout)),
        mask: 'padding',
      },
    ],
  );
  return [
    call('attention', { hidden_states: 'hidden_states' }, { attention_output: 'attention_output', attn_weights: '_' }, [
      attend,
      outputBlock(hiddenSize, hiddenSize, keys.hiddenDropout, {
        states: 'attention_output',
        entered: 'hidden_states',
        result: 'attention_output',
      }),
    ]),
    intermediate(hiddenSize, intermediateSize, keys.fn),
    outputBlock(intermediateSize, hiddenSize, keys.hiddenDropout, {
      states: 'intermediate_output',
      entered: 'attention_output',
      result: 'hidden_states',
    }),
  ];
}

export const firstToken = (size: number): Op => ({
  op: 'first_token',
  size,
  input: 'hidden_states',
  output: 'pooled_output',
});

/** The first token through a dense layer: BERT's pooler, then dropout and the scores. */
export const pooled = (prefix: string, keys: Pick<BertKeys, 'hiddenSize' | 'classifierDropout'>): Classifier => ({
  ops: [
    call(`${prefix}.pooler`, { hidden_states: 'hidden_states' }, { pooled_output: 'pooled_output' }, [
      firstToken(keys.hiddenSize),
      linear('dense', 'pooled_output', 'pooled_output', keys.hiddenSize, keys.hiddenSize, true),
      activation('tanh', 'pooled_output', 'pooled_output'),
    ]),
    ...dropWhere(keys.classifierDropout, 'pooled_output'),
    linear('classifier', 'pooled_output', 'logits', keys.hiddenSize, 2, true),
  ],
});

/** RoBERTa's and ELECTRA's classification head, a module of its own. */
export const headed = (keys: Pick<BertKeys, 'hiddenSize' | 'classifierDropout'>, fn: Activation): Classifier => ({
  ops: [
    call('classifier', { hidden_states: 'hidden_states' }, { logits: 'logits' }, [
      firstToken(keys.hiddenSize),
      ...dropWhere(keys.classifierDropout, 'pooled_output'),
      linear('dense', 'pooled_output', 'pooled_output', keys.hiddenSize, keys.hiddenSize, true),
      activation(fn, 'pooled_output', 'pooled_output'),
      ...dropWhere(keys.classifierDropout, 'pooled_output'),
      linear('out_proj', 'pooled_output', 'logits', keys.hiddenSize, 2, true),
    ]),
  ],
});

function encoderOnly(
  keys: BertKeys,
  prefix: string,
  parts: {
    readonly by: 'positions' | 'rows';
    readonly head: HeadDescription;
    readonly classifier: Classifier;
    readonly peft: PeftDefaults;
    /** Tables of positions and segments, int64. */
    readonly buffers: number;
  },
): ModelDescription {
  const { hiddenSize, embeddingSize } = keys;
  const project: Op[] =
    embeddingSize === hiddenSize
      ? []
      : [linear('embeddings_project', 'hidden_states', 'hidden_states', embeddingSize, hiddenSize, true)];
  return {
    hiddenSize,
    vocabSize: keys.vocabSize,
    form: 'causal',
    layersPath: `${prefix}.encoder.layer`,
    rootPath: prefix,
    embedding: [
      bertEmbeddings(keys, parts.by),
      ...project,
      { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
    ],
    kinds: [layer(keys)],
    layers: new Array<number>(keys.layers).fill(0),
    final: [],
    head: parts.head,
    classifier: parts.classifier,
    rotaryTables: undefined,
    masks: 1,
    paddingMasks: true,
    bufferBytes: parts.buffers * keys.positions * 8,
    alibi: false,
    peft: parts.peft,
  };
}

const LORA_ONLY = peftDefaults(['query', 'value']);
const PEFT = peftDefaults(['query', 'value'], ['key', 'value', 'output.dense'], ['output.dense']);

/** Dense, activation, norm, then the tied projection with a bias. */
export function tokenHead(
  config: ConfigReader,
  keys: Pick<BertKeys, 'hiddenSize' | 'embeddingSize' | 'vocabSize'>,
  names: { path: string; dense: string; norm: string; output: string; ownBias: boolean },
  fn: Activation,
): HeadDescription {
  const { hiddenSize, embeddingSize } = keys;
  const tied = config.flag('tie_word_embeddings', true);
  return {
    name: names.output,
    bias: true,
    tied,
    scaled: false,
    softcap: false,
    ...(embeddingSize === hiddenSize ? {} : { inFeatures: embeddingSize }),
    transform: [
      call(names.path, { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
        linear(names.dense, 'hidden_states', 'hidden_states', hiddenSize, embeddingSize, true),
        activation(fn, 'hidden_states', 'hidden_states'),
        hiddenNorm(names.norm, embeddingSize, 'layer'),
      ]),
      ...(names.ownBias && !tied ? [untiedBias(keys.vocabSize)] : []),
    ],
  };
}

/** Untied, the decoder has a bias of its own, and the one it would share stays without use. */
export const untiedBias = (vocabSize: number): Op => ({ op: 'parameter', name: 'bias', elements: vocabSize });

export const bert: Architecture = {
  modelTypes: ['bert', 'ernie'],
  source: 'transformers 5.17 models/bert/modeling_bert.py, models/ernie/modeling_ernie.py',
  describe: (config, modelType) => {
    const keys = readBertKeys(config, 30522);
    if (config.flag('use_task_id', false)) config.refuse('an ERNIE with task embeddings is not described');
    return encoderOnly(keys, modelType, {
      by: 'positions',
      head: tokenHead(
        config,
        keys,
        {
          path: 'cls.predictions.transform',
          dense: 'dense',
          norm: 'LayerNorm',
          output: 'cls.predictions.decoder',
          ownBias: true,
        },
        keys.fn,
      ),
      classifier: pooled(modelType, keys),
      peft: modelType === 'bert' ? PEFT : noPeftDefaults,
      buffers: 2,
    });
  },
};

export const roberta: Architecture = {
  modelTypes: ['roberta', 'xlm-roberta', 'camembert', 'data2vec-text'],
  source: 'transformers 5.17 models/roberta/modeling_roberta.py, models/data2vec/modeling_data2vec_text.py',
  describe: (config, modelType) => {
    const keys = readBertKeys(config, modelType === 'roberta' ? 50265 : 30522);
    return encoderOnly(keys, modelType === 'data2vec-text' ? 'data2vec_text' : 'roberta', {
      by: 'rows',
      head: tokenHead(
        config,
        keys,
        { path: 'lm_head', dense: 'dense', norm: 'layer_norm', output: 'lm_head.decoder', ownBias: true },
        'gelu',
      ),
      classifier: headed(keys, 'tanh'),
      peft: modelType === 'roberta' ? PEFT : modelType === 'xlm-roberta' ? LORA_ONLY : noPeftDefaults,
      buffers: 2,
    });
  },
};

export const electra: Architecture = {
  modelTypes: ['electra'],
  source: 'transformers 5.17 models/electra/modeling_electra.py',
  describe: (config) => {
    const read = readBertKeys(config, 30522, { hidden: 256, heads: 4, inner: 1024 });
    const keys = { ...read, embeddingSize: config.count('embedding_size', 128) };
    return encoderOnly(keys, 'electra', {
      by: 'positions',
      head: tokenHead(
        config,
        keys,
        {
          path: 'generator_predictions',
          dense: 'dense',
          norm: 'LayerNorm',
          output: 'generator_lm_head',
          ownBias: false,
        },
        'gelu',
      ),
      classifier: headed(keys, 'gelu'),
      peft: LORA_ONLY,
      buffers: 2,
    });
  },
};
