import type { Op, Stack } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type BartKeys, bartLayer, readSides, type Side } from './bart.ts';
import { dropWhere, tokenTable } from './bert.ts';
import { evenHeads } from './even-heads.ts';
import { activation, add, attention, call, heads, hiddenNorm, linear, peftDefaults } from './parts.ts';

/** Queries are multiplied first; queries, keys and values are brought into the order of heads. */
function attend(keys: BartKeys, side: Side, name: string, cross: boolean): Op {
  const { size } = keys;
  const source = cross ? 'key_value_states' : 'hidden_states';
  const views = (state: string): Op[] => [
    heads(state, `$${state}`),
    { op: 'copy', headMajor: true, input: `$${state}`, output: state },
  ];
  const args = { hidden_states: 'hidden_states', ...(cross ? { encoder_hidden_states: 'key_value_states' } : {}) };
  return call(name, args, { attn_output: 'hidden_states', attn_weights: '_' }, [
    linear('q_proj', 'hidden_states', '$q', size, size, true),
    { op: 'scale', input: '$q', output: 'query_states' },
    ...views('query_states'),
    linear('k_proj', source, 'key_states', size, size, false),
    ...views('key_states'),
    linear('v_proj', source, 'value_states', size, size, true),
    ...views('value_states'),
    {
      ...attention(evenHeads(size, side.heads, keys.attentionDropout)),
      mask: side.decoder && !cross ? 'causal' : 'none',
    },
    linear('out_proj', 'attn_output', 'attn_output', size, size, true),
  ]);
}

/** Sound in frames of 30 seconds through two convolutions and an encoder, text by a decoder. */
export const whisper: Architecture = {
  modelTypes: ['whisper'],
  source: 'transformers 5.17 models/whisper/modeling_whisper.py',
  describe: (config) => {
    const size = config.count('d_model', 384);
    const vocabSize = config.count('vocab_size', 51865);
    const sourcePositions = config.count('max_source_positions', 1500);
    const targetPositions = config.count('max_target_positions', 448);
    for (const key of ['encoder_layerdrop', 'decoder_layerdrop']) {
      if (config.number(key, 0) > 0) config.assumptions.push(`no layer is dropped (${key})`);
    }
    config.assumptions.push(`every row is ${sourcePositions * 2} frames of sound, 30 s as published`);
    const tied = config.flag('tie_word_embeddings', true);
    const keys: BartKeys = {
      family: { before: true },
      size,
      vocabSize,
      positions: targetPositions,
      dropout: config.number('dropout', 0),
      attentionDropout: config.number('attention_dropout', 0),
      activationDropout: config.number('activation_dropout', 0),
      fn: config.activation('activation_function', 'gelu'),
      tied,
    };
    const [encoder, decoder] = readSides(config, size, { heads: 6, inner: 1536, layers: { encoder: 4, decoder: 4 } });
    const stack = (side: Side): Omit<Stack, 'embedding' | 'masks'> => ({
      hiddenSize: size,
      layersPath: `model.${side.decoder ? 'decoder' : 'encoder'}.layers`,
      kinds: [bartLayer(keys, side, attend)],
      layers: new Array<number>(side.layers).fill(0),
      final: [hiddenNorm('layer_norm', size, 'layer')],
      rotaryTables: undefined,
    });
    const convolve = (name: string, from: number, frames: number, input?: string): Op[] => [
      {
        op: 'frames',
        name,
        inChannels: from,
        outChannels: size,
        kernel: 3,
        frames,
        ...(input ? { input } : {}),
        output: '$frames',
      },
      activation('gelu', '$frames', 'inputs_embeds'),
    ];
    return {
      ...stack(decoder),
      vocabSize,
      form: 'seq2seq',
      embedding: [
        tokenTable('embed_tokens', vocabSize, size, 'tokens', 'inputs_embeds'),
        tokenTable('embed_positions', targetPositions, size, 'positions', 'positions'),
        add('inputs_embeds', 'positions', 'hidden_states'),
        ...dropWhere(keys.dropout, 'hidden_states'),
      ],
      masks: 1,
      encoder: {
        ...stack(encoder),
        embedding: [
          ...convolve('conv1', config.count('num_mel_bins', 80), 2 * sourcePositions),
          ...convolve('conv2', size, sourcePositions, 'inputs_embeds'),
          {
            ...tokenTable('embed_positions', sourcePositions, size, 'positions', '$positions'),
            fixed: 'parameter',
          } as Op,
          add('inputs_embeds', '$positions', 'hidden_states'),
          ...dropWhere(keys.dropout, 'hidden_states'),
        ],
        masks: 0,
        output: 'encoder_hidden_states',
        tokens: sourcePositions,
      },
      head: { name: 'proj_out', bias: false, tied, scaled: false, softcap: false },
      bufferBytes: 0,
      alibi: false,
      peft: peftDefaults(undefined),
    };
  },
};
