import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type BertKeys, dropWhere, headed, readBertKeys, tokenTable } from './bert.ts';
import { evenHeads } from './even-heads.ts';
import { activation, add, attention, call, heads, hiddenNorm, linear, noPeftDefaults, norm, rotary } from './parts.ts';

function layer(keys: BertKeys, turns: boolean): readonly Op[] {
  const { hiddenSize: size, heads: count, intermediateSize: inner, hiddenDropout: p } = keys;
  const shape = evenHeads(size, count, keys.attentionDropout);
  const project = (name: string, state: string): Op[] => [
    linear(name, 'hidden_states', state, size, size, true),
    heads(state, state),
  ];
  /** Dense, dropout, sum with what entered. */
  const output = (from: number, states: string, entered: string, result: string): Op =>
    call('output', { [states]: 'hidden_states', [entered]: 'input_tensor' }, { hidden_states: result }, [
      linear('dense', 'hidden_states', 'hidden_states', from, size, true),
      ...dropWhere(p, 'hidden_states'),
      add('hidden_states', 'input_tensor', 'hidden_states'),
    ]);
  return [
    call('attention', { hidden_states: 'hidden_states' }, { attn_output: 'attention_output' }, [
      norm('LayerNorm', 'hidden_states', 'hidden_states_ln', size, 'layer'),
      call('self', { hidden_states_ln: 'hidden_states' }, { attn_output: 'attn_output', attn_weights: '_' }, [
        ...project('query', 'query_states'),
        ...project('key', 'key_states'),
        ...project('value', 'value_states'),
        { op: 'scale', input: 'query_states', output: 'query_states' },
        ...(turns ? [rotary(shape, shape.headDim, false, { wide: 'each' })] : []),
        { ...attention(shape), mask: 'padding' },
      ]),
      output(size, 'attn_output', 'hidden_states', 'attn_output'),
    ]),
    call('', { attention_output: 'attention_output' }, { layer_output: 'hidden_states' }, [
      norm('LayerNorm', 'attention_output', 'attention_output_ln', size, 'layer'),
      call('intermediate', { attention_output_ln: 'hidden_states' }, { hidden_states: 'intermediate_output' }, [
        linear('dense', 'hidden_states', 'hidden_states', size, inner, true),
        activation('gelu_erf', 'hidden_states', 'hidden_states'),
      ]),
      output(inner, 'intermediate_output', 'attention_output', 'layer_output'),
    ]),
  ];
}

/** ESM 1b and 2: protein encoders, norms before the blocks. */
export const esm: Architecture = {
  modelTypes: ['esm'],
  source: 'transformers 5.17 models/esm/modeling_esm.py',
  describe: (config) => {
    const keys = { ...readBertKeys(config, 33), positions: config.count('max_position_embeddings', 1026) };
    const { hiddenSize: size } = keys;
    if (!config.has('vocab_size')) config.refuse('an ESM without vocab_size has no token table');
    if (config.flag('is_folding_model', false)) config.refuse('ESMFold is not described');
    const turns = String(config.raw('position_embedding_type') ?? 'absolute') === 'rotary';
    const times = (count: number): Op[] =>
      new Array<Op>(count).fill({ op: 'scale', input: 'embeddings', output: 'embeddings' });
    return {
      hiddenSize: size,
      vocabSize: keys.vocabSize,
      form: 'masked',
      layersPath: 'esm.encoder.layer',
      rootPath: 'esm',
      embedding: [
        call('embeddings', {}, { embeddings: 'hidden_states' }, [
          tokenTable('word_embeddings', keys.vocabSize, size, 'tokens', 'inputs_embeds'),
          { op: 'assign', input: 'inputs_embeds', output: 'embeddings' },
          // Masked tokens are zeroed, and the rest made larger by their share.
          ...(config.flag('token_dropout', false) ? times(3) : []),
          ...(turns
            ? []
            : [
                tokenTable('position_embeddings', keys.positions, size, 'rows', 'position_embeddings'),
                add('embeddings', 'position_embeddings', 'embeddings'),
              ]),
          ...(config.flag('emb_layer_norm_before', false)
            ? [norm('layer_norm', 'embeddings', 'embeddings', size, 'layer')]
            : []),
          // Times the padding mask.
          ...times(1),
        ]),
        { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
      ],
      kinds: [layer(keys, turns)],
      layers: new Array<number>(keys.layers).fill(0),
      final: [hiddenNorm('encoder.emb_layer_norm_after', size, 'layer')],
      head: {
        name: 'lm_head.decoder',
        bias: false,
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
        offset: true,
        transform: [
          call('lm_head', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
            linear('dense', 'hidden_states', 'hidden_states', size, size, true),
            activation('gelu_erf', 'hidden_states', 'hidden_states'),
            hiddenNorm('layer_norm', size, 'layer'),
            { op: 'parameter', name: 'bias', elements: keys.vocabSize },
          ]),
        ],
      },
      classifier: headed({ hiddenSize: size, classifierDropout: keys.hiddenDropout }, 'tanh'),
      idle: [
        {
          path: 'esm',
          ops: [linear('contact_head.regression', 'x', 'x', keys.layers * keys.heads, 1, true)],
          count: 1,
        },
      ],
      rotaryTables: turns ? { dim: Math.floor(size / keys.heads), pairs: 1 } : undefined,
      masks: 1,
      paddingMasks: true,
      bufferBytes: keys.positions * 8 + (turns ? (Math.floor(size / keys.heads) / 2) * 4 : 0),
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
