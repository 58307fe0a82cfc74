import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere, headed, intermediate, outputBlock, readBertKeys, tokenHead, tokenTable } from './bert.ts';
import { evenHeads } from './even-heads.ts';
import { add, attention, call, heads, linear, noPeftDefaults, norm } from './parts.ts';

/** BERT with one bias by distance, shared by all layers; attention is written out. */
export const mpnet: Architecture = {
  modelTypes: ['mpnet'],
  source: 'transformers 5.17 models/mpnet/modeling_mpnet.py',
  describe: (config) => {
    const keys = readBertKeys(config, 30527);
    const { hiddenSize: size, heads: count, hiddenDropout } = keys;
    const project = (name: string, state: string): Op[] => [
      linear(name, 'hidden_states', state, size, size, true),
      heads(state, state),
    ];
    const shape = { ...evenHeads(size, count, keys.attentionDropout), eager: 'named' as const };
    const bias = { position_bias: 'position_bias' };
    const layer: readonly Op[] = [
      call('attention', { hidden_states: 'hidden_states', ...bias }, { attention_output: 'attention_output' }, [
        call('attn', { hidden_states: 'hidden_states', ...bias }, { attn_output: '$attended' }, [
          ...project('q', 'query_states'),
          ...project('k', 'key_states'),
          ...project('v', 'value_states'),
          { ...attention(shape), mask: 'padding', bias: 'position_bias' },
          linear('o', 'attn_output', 'attn_output', size, size, true),
        ]),
        ...(hiddenDropout > 0 ? dropWhere(hiddenDropout, '$attended') : []),
        add('$attended', 'hidden_states', '$sum'),
        norm('LayerNorm', '$sum', 'attention_output', size, 'layer'),
      ]),
      intermediate(size, keys.intermediateSize, keys.fn),
      outputBlock(keys.intermediateSize, size, hiddenDropout, {
        states: 'intermediate_output',
        entered: 'attention_output',
        result: 'hidden_states',
      }),
    ];
    return {
      hiddenSize: size,
      vocabSize: keys.vocabSize,
      form: 'masked',
      layersPath: 'mpnet.encoder.layer',
      rootPath: 'mpnet',
      shares: ['position_bias'],
      sharesEnd: true,
      embedding: [
        call('embeddings', {}, { embeddings: 'hidden_states' }, [
          tokenTable('word_embeddings', keys.vocabSize, size, 'tokens', 'inputs_embeds'),
          tokenTable('position_embeddings', keys.positions, size, 'rows', 'position_embeddings'),
          add('inputs_embeds', 'position_embeddings', 'embeddings'),
          norm('LayerNorm', 'embeddings', 'embeddings', size, 'layer'),
          ...dropWhere(hiddenDropout, 'embeddings'),
        ]),
        { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
        call('encoder', { hidden_states: 'hidden_states' }, bias, [
          {
            op: 'position_bias',
            name: 'relative_attention_bias',
            heads: count,
            buckets: config.count('relative_attention_num_buckets', 32),
            keys: 'hidden_states',
            keySize: size,
            perRow: true,
            output: 'position_bias',
          },
        ]),
      ],
      kinds: [layer],
      layers: new Array<number>(keys.layers).fill(0),
      final: [],
      head: tokenHead(
        config,
        keys,
        { path: 'lm_head', dense: 'dense', norm: 'layer_norm', output: 'lm_head.decoder', ownBias: true },
        'gelu',
      ),
      classifier: headed({ hiddenSize: size, classifierDropout: hiddenDropout }, 'tanh'),
      rotaryTables: undefined,
      masks: 1,
      paddingMasks: true,
      kernels: [],
      checkpoints: false,
      bufferBytes: keys.positions * 8,
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
