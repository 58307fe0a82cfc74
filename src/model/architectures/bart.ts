import type { ConfigReader } from '../config-reader.ts';
import type { Activation, Classifier, Op, Stack } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere } from './bert.ts';
import { evenHeads } from './even-heads.ts';
import {
  activation,
  add,
  attention,
  call,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  norm,
  peftDefaults,
} from './parts.ts';

/** How a family differs from BART. */
interface Family {
  readonly vocab: number;
  readonly size: number;
  readonly layers: { readonly encoder: number; readonly decoder: number };
  readonly heads: number;
  readonly inner: number;
  readonly positions: number;
  /** Rows of the position table before the first position. */
  readonly offset: number;
  /** Positions that are never trained. */
  readonly fixed?: 'parameter' | 'buffer';
  /** Norms stand before the blocks, and one after the last layer (mBART, Pegasus). */
  readonly before: boolean;
  /** A norm after the embedding; `early`: in the decoder before positions are added. */
  readonly embeddingNorm: 'late' | 'early' | 'none';
  /** A constant vector is added to the logits. */
  readonly logitOffset: boolean;
  readonly attentionDropout?: number;
  readonly activation?: Activation;
  readonly classifier?: boolean;
}

const BART: Family = {
  vocab: 50265,
  size: 1024,
  layers: { encoder: 12, decoder: 12 },
  heads: 16,
  inner: 4096,
  positions: 1024,
  offset: 2,
  before: false,
  embeddingNorm: 'late',
  logitOffset: true,
  classifier: true,
};

const FAMILIES: Readonly<Record<string, Family>> = {
  bart: BART,
  mbart: { ...BART, before: true },
  mvp: { ...BART, vocab: 50267 },
  plbart: {
    ...BART,
    vocab: 50005,
    size: 768,
    layers: { encoder: 6, decoder: 6 },
    heads: 12,
    inner: 3072,
    attentionDropout: 0.1,
  },
  pegasus: { ...BART, offset: 0, fixed: 'parameter', before: true, embeddingNorm: 'none', classifier: false },
  marian: { ...BART, vocab: 58101, offset: 0, fixed: 'parameter', embeddingNorm: 'none', classifier: false },
  m2m_100: {
    ...BART,
    vocab: 128112,
    fixed: 'buffer',
    before: true,
    embeddingNorm: 'none',
    logitOffset: false,
    attentionDropout: 0.1,
    activation: 'relu',
    classifier: false,
  },
  blenderbot: {
    ...BART,
    vocab: 8008,
    size: 2560,
    layers: { encoder: 2, decoder: 24 },
    heads: 32,
    inner: 10240,
    positions: 128,
    offset: 0,
    before: true,
    embeddingNorm: 'none',
    classifier: false,
  },
  'blenderbot-small': {
    ...BART,
    size: 512,
    layers: { encoder: 8, decoder: 8 },
    inner: 2048,
    positions: 512,
    offset: 0,
    embeddingNorm: 'early',
    classifier: false,
  },
};

export interface BartKeys {
  readonly family: Pick<Family, 'before'>;
  readonly size: number;
  readonly vocabSize: number;
  readonly positions: number;
  readonly dropout: number;
  readonly attentionDropout: number;
  readonly activationDropout: number;
  readonly fn: Activation;
  /** Encoder, decoder and head have one table. */
  readonly tied: boolean;
}

export interface Side {
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
      ...attention(evenHeads(size, side.heads, keys.attentionDropout)),
      mask: side.decoder && !cross ? 'causal' : 'padding',
    },
    linear('out_proj', 'attn_output', 'attn_output', size, size, true),
  ]);
}

const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };

/** Norms, attention, feed-forward; a decoder looks at the encoder between them. */
export function bartLayer(keys: BartKeys, side: Side, attendBy = attend): readonly Op[] {
  const { size, family } = keys;
  const { before } = family;
  const block = (normName: string, ops: readonly Op[]): readonly Op[] => [
    hold,
    ...(before ? [hiddenNorm(normName, size, 'layer')] : []),
    ...ops,
    ...dropWhere(keys.dropout, 'hidden_states'),
    add('residual', 'hidden_states', 'hidden_states'),
    ...(before ? [] : [hiddenNorm(normName, size, 'layer')]),
  ];
  return [
    ...block('self_attn_layer_norm', [attendBy(keys, side, 'self_attn', false)]),
    ...(side.decoder ? block('encoder_attn_layer_norm', [attendBy(keys, side, 'encoder_attn', true)]) : []),
    ...block('final_layer_norm', [
      linear('fc1', 'hidden_states', '$inner', size, side.inner, true),
      activation(keys.fn, '$inner', 'hidden_states'),
      ...dropWhere(keys.activationDropout, 'hidden_states'),
      linear('fc2', 'hidden_states', 'hidden_states', side.inner, size, true),
    ]),
  ];
}

function stack(keys: BartKeys, side: Side, family: Family): Stack {
  const { size } = keys;
  const early = family.embeddingNorm === 'early' && side.decoder;
  const path = side.decoder ? 'model.decoder' : 'model.encoder';
  return {
    hiddenSize: size,
    layersPath: `${path}.layers`,
    embedding: [
      {
        op: 'embedding',
        name: side.decoder || !keys.tied ? 'embed_tokens' : 'shared',
        rows: keys.vocabSize,
        size,
        by: 'tokens',
        scaled: true,
        ...(side.decoder && keys.tied ? { shared: true } : {}),
        output: 'inputs_embeds',
      },
      {
        op: 'embedding',
        name: 'embed_positions',
        rows: keys.positions,
        size,
        // Pegasus and its kin count them, the others read them off the padding in the encoder.
        by: family.fixed === 'buffer' || (!side.decoder && family.offset > 0) ? 'rows' : 'positions',
        ...(family.fixed ? { fixed: family.fixed } : {}),
        output: 'positions',
      },
      ...(early ? [norm('layernorm_embedding', 'inputs_embeds', 'inputs_embeds', size, 'layer')] : []),
      add('inputs_embeds', 'positions', 'hidden_states'),
      ...(family.embeddingNorm === 'none' || early ? [] : [hiddenNorm('layernorm_embedding', size, 'layer')]),
      ...dropWhere(keys.dropout, 'hidden_states'),
    ],
    kinds: [bartLayer(keys, side)],
    layers: new Array<number>(side.layers).fill(0),
    final: family.before ? [hiddenNorm('layer_norm', size, 'layer')] : [],
    rotaryTables: undefined,
    masks: 1,
    paddingMasks: !side.decoder,
  };
}

export function readSides(
  config: ConfigReader,
  size: number,
  family: Pick<Family, 'heads' | 'inner' | 'layers'>,
): readonly [Side, Side] {
  const side = (name: 'encoder' | 'decoder'): Side => {
    const count = config.count(`${name}_attention_heads`, family.heads);
    config.divisible(size, 'd_model', count, `${name}_attention_heads`);
    return {
      decoder: name === 'decoder',
      layers: config.count(`${name}_layers`, family.layers[name]),
      heads: count,
      inner: config.count(`${name}_ffn_dim`, family.inner),
    };
  };
  return [side('encoder'), side('decoder')];
}

/** The first token through a dense layer. */
const classifier = (size: number, p: number): Classifier => ({
  ops: [
    { op: 'first_token', size, input: 'hidden_states', output: 'pooled_output' },
    call('classification_head', { pooled_output: 'pooled_output' }, { logits: 'logits' }, [
      ...dropWhere(p, 'pooled_output'),
      linear('dense', 'pooled_output', 'pooled_output', size, size, true),
      activation('tanh', 'pooled_output', 'pooled_output'),
      ...dropWhere(p, 'pooled_output'),
      linear('out_proj', 'pooled_output', 'logits', size, 2, true),
    ]),
  ],
});

export const bart: Architecture = {
  modelTypes: Object.keys(FAMILIES),
  source:
    'transformers 5.17 models/bart/modeling_bart.py and those of mbart, mvp, plbart, pegasus, marian, m2m_100, blenderbot, blenderbot_small',
  describe: (config, modelType) => {
    const family = FAMILIES[modelType]!;
    const size = config.count(['d_model', 'hidden_size'], family.size);
    const vocabSize = config.count('vocab_size', family.vocab);
    if (!config.flag('share_encoder_decoder_embeddings', true)) {
      config.refuse('a Marian whose encoder and decoder have tables of their own is not described');
    }
    if (config.flag('use_prompt', false)) config.refuse('an MVP with prompts is not described');
    for (const key of ['encoder_layerdrop', 'decoder_layerdrop']) {
      if (config.number(key, 0) > 0) config.assumptions.push(`no layer is dropped (${key})`);
    }
    const keys: BartKeys = {
      family,
      size,
      vocabSize,
      positions: config.count('max_position_embeddings', family.positions) + family.offset,
      dropout: config.number('dropout', 0.1),
      attentionDropout: config.number('attention_dropout', family.attentionDropout ?? 0),
      activationDropout: config.number('activation_dropout', 0),
      fn: config.activation('activation_function', family.activation ?? 'gelu'),
      tied: config.flag('tie_word_embeddings', true),
    };
    const [encoder, decoder] = readSides(config, size, family);
    // Sinusoids of both sides, and final_logits_bias: buffers of the checkpoint.
    const sinusoids = family.fixed === 'buffer' ? 2 * keys.positions * size * 2 : 0;
    return {
      ...stack(keys, decoder, family),
      vocabSize,
      form: 'seq2seq',
      encoder: { ...stack(keys, encoder, family), output: 'encoder_hidden_states' },
      head: {
        name: 'lm_head',
        bias: false,
        tied: keys.tied,
        scaled: false,
        softcap: false,
        ...(family.logitOffset ? { offset: true } : {}),
      },
      // Without ties the model keeps one more table, which nothing reads.
      ...(keys.tied
        ? {}
        : {
            idle: [
              {
                path: 'model',
                ops: [{ op: 'parameter', name: 'shared.weight', elements: vocabSize * size }],
                count: 1,
              },
            ],
          }),
      ...(family.classifier ? { classifier: classifier(size, config.number('classifier_dropout', 0)) } : {}),
      bufferBytes: (family.logitOffset ? vocabSize * 4 : 0) + sinusoids,
      alibi: false,
      peft:
        modelType === 'bart'
          ? peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'fc2'], ['fc2'])
          : noPeftDefaults,
    };
  },
};
