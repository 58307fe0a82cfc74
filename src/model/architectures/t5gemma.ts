import { ConfigReader } from '../config-reader.ts';
import type { Op, Stack } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere } from './bert.ts';
import { scaledEmbedding } from './gemma.ts';
import { type LlamaLike, readLlamaKeys } from './llama.ts';
import {
  add,
  attention,
  call,
  gatedMlp,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  rotaryBufferBytes,
  selfAttention,
} from './parts.ts';

const DEFAULTS = {
  hidden: 2304,
  intermediate: 9216,
  layers: 26,
  heads: 8,
  kvHeads: 4,
  headDim: 256,
  vocab: 256000,
  activation: 'gelu_pytorch_tanh',
  activationKeys: ['hidden_activation'],
} as const;

interface Side {
  readonly keys: LlamaLike;
  readonly bias: boolean;
  readonly dropout: number;
  /** Features of the encoder's states, where this side looks at them. */
  readonly source: number | undefined;
}

function readSide(config: ConfigReader | undefined, outer: ConfigReader, source: number | undefined): Side {
  const reader = config ?? new ConfigReader({}, outer);
  const read = readLlamaKeys(reader, DEFAULTS);
  const capped =
    reader.raw('attn_logit_softcapping') === null ? false : reader.number('attn_logit_softcapping', 50) > 0;
  const shape = { ...read.shape, softcap: capped, dropout: outer.number('attention_dropout', 0) };
  return {
    keys: { ...read, shape },
    bias: reader.flag('attention_bias', false),
    dropout: outer.number('dropout_rate', 0),
    source,
  };
}

/** Attention of the decoder's tokens to the encoder's states: nothing turns. */
function crossAttention({ keys: { shape }, bias }: Side, source: number): Op {
  const { hiddenSize, heads: count, kvHeads, headDim } = shape;
  const project = (name: string, input: string, state: string, from: number, groups: number): Op[] => [
    linear(name, input, state, from, groups * headDim, bias),
    heads(state, state),
  ];
  return call(
    'cross_attn',
    { hidden_states: 'hidden_states', encoder_hidden_states: 'encoder_hidden_states' },
    { attn_output: 'hidden_states', attn_weights: '_' },
    [
      ...project('q_proj', 'hidden_states', 'query_states', hiddenSize, count),
      ...project('k_proj', 'encoder_hidden_states', 'key_states', source, kvHeads),
      ...project('v_proj', 'encoder_hidden_states', 'value_states', source, kvHeads),
      attention(shape),
      linear('o_proj', 'attn_output', 'attn_output', count * headDim, hiddenSize, bias),
    ],
  );
}

function layer(side: Side): readonly Op[] {
  const { keys, bias, dropout, source } = side;
  const size = keys.hiddenSize;
  const block = (name: string, op: Op): readonly Op[] => [
    { op: 'assign', input: 'hidden_states', output: 'residual' },
    hiddenNorm(`pre_${name}_layernorm`, size, 'rms_offset'),
    op,
    hiddenNorm(`post_${name}_layernorm`, size, 'rms_offset'),
    ...(dropout > 0
      ? [...dropWhere(dropout, 'hidden_states', '$dropped'), add('residual', '$dropped', 'hidden_states')]
      : [add('residual', 'hidden_states', 'hidden_states')]),
  ];
  return [
    ...block('self_attn', selfAttention(keys.shape, { qkvBias: bias, outputBias: bias })),
    ...(source === undefined ? [] : block('cross_attn', crossAttention(side, source))),
    ...block('feedforward', gatedMlp(size, keys.intermediateSize, keys.activation)),
  ];
}

const stack = (side: Side, path: string): Stack => ({
  hiddenSize: side.keys.hiddenSize,
  layersPath: `${path}.layers`,
  embedding: [...scaledEmbedding(side.keys), ...dropWhere(side.dropout, 'hidden_states')],
  kinds: [layer(side)],
  layers: new Array<number>(side.keys.layers).fill(0),
  final: [hiddenNorm('norm', side.keys.hiddenSize, 'rms_offset'), ...dropWhere(side.dropout, 'hidden_states')],
  rotaryTables: { dim: side.keys.shape.headDim, pairs: 1 },
  // A padding mask is made where none is passed; the decoder has one more for the encoder's states.
  masks: side.source === undefined ? 2 : 3,
});

/** Gemma 2's layers on both sides, the decoder's with one more block that looks at the encoder. */
export const t5gemma: Architecture = {
  modelTypes: ['t5gemma'],
  source: 'transformers 5.17 models/t5gemma/modeling_t5gemma.py',
  describe: (config) => {
    if (!config.flag('is_encoder_decoder', true)) config.refuse('a T5Gemma without a decoder is not described');
    const encoder = readSide(config.part('encoder'), config, undefined);
    const part = config.part('decoder');
    const decoder = readSide(part, config, encoder.keys.hiddenSize);
    const cap = part?.raw('final_logit_softcapping');
    const { hiddenSize, vocabSize, shape } = decoder.keys;
    return {
      ...stack(decoder, 'model.decoder'),
      vocabSize,
      form: 'seq2seq',
      encoder: { ...stack(encoder, 'model.encoder'), output: 'encoder_hidden_states' },
      head: {
        name: 'lm_head.out_proj',
        bias: false,
        tied: config.flag('tie_word_embeddings', true),
        ownTable: true,
        upcast: true,
        scaled: false,
        softcap: cap === null ? false : (part?.number('final_logit_softcapping', 30) ?? 30) > 0,
      },
      classifier: {
        ops: [
          call('score', { hidden_states: 'hidden_states' }, { logits: 'logits' }, [
            ...dropWhere(config.number('classifier_dropout_rate', 0), 'hidden_states'),
            linear('out_proj', 'hidden_states', 'logits', hiddenSize, 2, true),
          ]),
        ],
      },
      bufferBytes: rotaryBufferBytes(shape.headDim) + rotaryBufferBytes(encoder.keys.shape.headDim),
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
