import type { Architecture } from './architecture.ts';
import { type BartKeys, bartLayer } from './bart.ts';
import { dropWhere, tokenTable } from './bert.ts';
import { add, hiddenNorm, noPeftDefaults } from './parts.ts';

/** The decoder of BART without an encoder: learned positions, norms before the blocks. */
export const biogpt: Architecture = {
  modelTypes: ['biogpt'],
  source: 'transformers 5.17 models/biogpt/modeling_biogpt.py',
  describe: (config) => {
    const size = config.count('hidden_size', 1024);
    const heads = config.count('num_attention_heads', 16);
    const vocabSize = config.count('vocab_size', 42384);
    const positions = config.count('max_position_embeddings', 1024) + 2;
    config.divisible(size, 'hidden_size', heads, 'num_attention_heads');
    if (config.number('layerdrop', 0) > 0) config.assumptions.push('no layer is dropped (layerdrop)');
    const tied = config.flag('tie_word_embeddings', true);
    const keys: BartKeys = {
      family: { before: true },
      size,
      vocabSize,
      positions,
      dropout: config.number('hidden_dropout_prob', 0.1),
      attentionDropout: config.number('attention_probs_dropout_prob', 0.1),
      activationDropout: config.number('activation_dropout', 0),
      fn: config.activation('hidden_act', 'gelu'),
      tied,
    };
    // A decoder's attention, and no encoder to look at.
    const layer = bartLayer(keys, {
      decoder: false,
      layers: 1,
      heads,
      inner: config.count('intermediate_size', 4096),
    }).map((op) =>
      op.op === 'call'
        ? { ...op, ops: op.ops.map((each) => (each.op === 'attention' ? { ...each, mask: 'causal' as const } : each)) }
        : op,
    );
    return {
      hiddenSize: size,
      vocabSize,
      layersPath: 'biogpt.layers',
      embedding: [
        {
          op: 'embedding',
          name: 'embed_tokens',
          rows: vocabSize,
          size,
          by: 'tokens',
          scaled: true,
          output: 'inputs_embeds',
        },
        tokenTable('embed_positions', positions, size, 'rows', 'positions'),
        add('inputs_embeds', 'positions', 'hidden_states'),
        ...dropWhere(keys.dropout, 'hidden_states'),
      ],
      kinds: [layer],
      layers: new Array<number>(config.count('num_hidden_layers', 24)).fill(0),
      final: [hiddenNorm('layer_norm', size, 'layer')],
      head: { name: 'output_projection', bias: false, tied, scaled: false, softcap: false },
      rotaryTables: undefined,
      masks: 1,
      bufferBytes: 0,
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
