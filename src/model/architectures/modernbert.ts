import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere } from './bert.ts';
import {
  activation,
  add,
  attention,
  call,
  heads,
  hiddenNorm,
  linear,
  multiply,
  noPeftDefaults,
  norm,
  rotary,
  rotaryBufferBytes,
  selfAttention,
  split,
} from './parts.ts';

/** The decoder (Ettin) has a projection each for queries, keys and values, and sees what came before alone. */
export const modernbert: Architecture = {
  modelTypes: ['modernbert', 'modernbert-decoder'],
  source:
    'transformers 5.17 models/modernbert/modeling_modernbert.py, models/modernbert_decoder/modeling_modernbert_decoder.py',
  describe: (config, modelType) => {
    const decodes = modelType === 'modernbert-decoder';
    const size = config.count('hidden_size', 768);
    const count = config.count('num_attention_heads', 12);
    const inner = config.count('intermediate_size', 1152);
    const layers = config.count('num_hidden_layers', 22);
    const vocabSize = config.count('vocab_size', 50368);
    const fn = config.activation('hidden_activation', 'gelu');
    const normBias = config.flag('norm_bias', false);
    const attentionBias = config.flag('attention_bias', false);
    const mlpBias = config.flag('mlp_bias', false);
    const attentionDropout = config.number('attention_dropout', 0);
    config.divisible(size, 'hidden_size', count, 'num_attention_heads');
    const shape = {
      hiddenSize: size,
      heads: count,
      kvHeads: count,
      headDim: Math.floor(size / count),
      dropout: attentionDropout,
    };
    const types =
      config.layerNames('layer_types', layers, ['sliding_attention', 'full_attention']) ??
      Array.from({ length: layers }, (_, i) =>
        i % config.count('global_attn_every_n_layers', 3) === 0 ? 'full_attention' : 'sliding_attention',
      );
    const states = ['query_states', 'key_states', 'value_states'] as const;
    const feedForward = (input: string, output: string): Op =>
      call('mlp', { [input]: 'hidden_states' }, { out: output }, [
        linear('Wi', 'hidden_states', '$both', size, 2 * inner, mlpBias),
        split('$both', [
          ['input', inner],
          ['gate', inner],
        ]),
        activation(fn, 'input', '$activated'),
        multiply('$activated', 'gate', '$product'),
        ...dropWhere(config.number('mlp_dropout', 0), '$product'),
        linear('Wo', '$product', 'out', inner, size, mlpBias),
      ]);
    const decode = (first: boolean): readonly Op[] => [
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      ...(first ? [] : [hiddenNorm('attn_norm', size, 'layer', normBias)]),
      selfAttention(
        shape,
        {
          qkvBias: attentionBias,
          outputBias: attentionBias,
          outputName: 'Wo',
          outputDropout: attentionDropout,
          rotaryForm: { wide: 'each' },
        },
        'attn',
      ),
      add('residual', 'hidden_states', 'hidden_states'),
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      hiddenNorm('mlp_norm', size, 'layer', normBias),
      feedForward('hidden_states', '$out'),
      add('residual', '$out', 'hidden_states'),
    ];
    const layer = (first: boolean, sliding: boolean): readonly Op[] => [
      ...(first
        ? [{ op: 'assign', input: 'hidden_states', output: '$normed' } as const]
        : [norm('attn_norm', 'hidden_states', '$normed', size, 'layer', normBias)]),
      call('attn', { $normed: 'hidden_states' }, { attn_output: 'attn_output', attn_weights: '_' }, [
        linear('Wqkv', 'hidden_states', 'qkv', size, 3 * size, attentionBias),
        split(
          'qkv',
          states.map((state) => [state, size] as const),
        ),
        ...states.map((state) => heads(state, state)),
        { ...rotary(shape), wide: 'before' } as Op,
        // A window needs a mask even where no row is padded.
        { ...attention(shape), mask: sliding ? 'causal' : 'padding' },
        linear('Wo', 'attn_output', 'attn_output', size, size, attentionBias),
        ...dropWhere(attentionDropout, 'attn_output'),
      ]),
      { op: 'drop', names: ['$normed'] },
      add('hidden_states', 'attn_output', 'hidden_states'),
      norm('mlp_norm', 'hidden_states', '$normed', size, 'layer', normBias),
      feedForward('$normed', '$out'),
      { op: 'drop', names: ['$normed'] },
      add('hidden_states', '$out', 'hidden_states'),
    ];
    const head = (name: string): Op =>
      call(name, { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
        linear('dense', 'hidden_states', 'hidden_states', size, size, config.flag('classifier_bias', false)),
        activation(config.activation('classifier_activation', 'gelu'), 'hidden_states', 'hidden_states'),
        hiddenNorm('norm', size, 'layer', normBias),
      ]);
    // Only the first layer has no norm before its attention.
    return {
      hiddenSize: size,
      vocabSize,
      form: decodes ? 'causal' : 'masked',
      layersPath: 'model.layers',
      embedding: [
        call('embeddings', {}, { hidden_states: 'hidden_states' }, [
          {
            op: 'embedding',
            name: 'tok_embeddings',
            rows: vocabSize,
            size,
            by: 'tokens',
            output: '$looked',
          },
          norm('norm', '$looked', '$normed', size, 'layer', normBias),
          ...dropWhere(config.number('embedding_dropout', 0), '$normed'),
          { op: 'assign', input: '$normed', output: 'hidden_states' },
        ]),
      ],
      kinds: decodes
        ? [decode(true), decode(false)]
        : [layer(true, types[0] === 'sliding_attention'), layer(false, true), layer(false, false)],
      layers: types.map((type, i) => (i === 0 ? 0 : decodes || type === 'sliding_attention' ? 1 : 2)),
      final: [hiddenNorm('final_norm', size, 'layer', normBias)],
      head: {
        name: 'decoder',
        bias: config.flag('decoder_bias', true),
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
        transform: [head(decodes ? 'lm_head' : 'head')],
      },
      classifier: {
        ops: [
          { op: 'first_token', size, input: 'hidden_states', output: 'hidden_states' },
          head('head'),
          ...dropWhere(config.number('classifier_dropout', 0), 'hidden_states'),
          linear('classifier', 'hidden_states', 'logits', size, 2, !decodes || config.flag('classifier_bias', false)),
        ],
      },
      rotaryTables: { dim: shape.headDim, pairs: new Set(types).size },
      masks: 2,
      paddingMasks: !decodes,
      bufferBytes: rotaryBufferBytes(shape.headDim, new Set(types).size),
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
