import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere, pooled, readBertKeys, tokenHead, tokenTable } from './bert.ts';
import { add, call, gatedMlp, hiddenNorm, noPeftDefaults, norm, rotaryBufferBytes, selfAttention } from './parts.ts';

/** BERT with rotary positions and gated feed-forward layers, norms after the blocks. */
export const nomicBert: Architecture = {
  modelTypes: ['nomic_bert'],
  source: 'transformers 5.17 models/nomic_bert/modeling_nomic_bert.py',
  describe: (config) => {
    const read = readBertKeys(config, 30528);
    const p = config.number('hidden_dropout_prob', 0);
    const attentionDropout = config.number('attention_probs_dropout_prob', 0);
    const keys = { ...read, attentionDropout, classifierDropout: config.number('classifier_dropout', p) };
    const { hiddenSize: size, heads: count } = keys;
    const headDim = config.count('head_dim', Math.floor(size / count));
    const block = selfAttention({
      hiddenSize: size,
      heads: count,
      kvHeads: count,
      headDim,
      dropout: attentionDropout,
      eager: 'bare',
    });
    const layer: readonly Op[] = [
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      {
        ...block,
        results: { attn_output: 'attention_output', attn_weights: '_' },
        ops: block.ops.map((op) => (op.op === 'attention' ? { ...op, mask: 'padding' as const } : op)),
      },
      ...(p > 0
        ? dropWhere(p, 'attention_output', '$dropped')
        : [{ op: 'assign', input: 'attention_output', output: '$dropped' } as const]),
      add('residual', '$dropped', 'hidden_states'),
      hiddenNorm('post_attention_layernorm', size, 'layer'),
      { op: 'assign', input: 'hidden_states', output: 'residual' },
      gatedMlp(size, keys.intermediateSize, config.activation('hidden_act', 'silu')),
      ...dropWhere(p, 'hidden_states'),
      add('residual', 'hidden_states', 'hidden_states'),
      hiddenNorm('post_mlp_layernorm', size, 'layer'),
    ];
    return {
      hiddenSize: size,
      vocabSize: keys.vocabSize,
      form: 'masked',
      layersPath: 'nomic_bert.layers',
      rootPath: 'nomic_bert',
      embedding: [
        call('embeddings', {}, { embeddings: 'hidden_states' }, [
          tokenTable('word_embeddings', keys.vocabSize, size, 'tokens', 'embeddings'),
          { ...tokenTable('token_type_embeddings', keys.types, size, 'rows', 'token_type'), segments: true } as Op,
          add('embeddings', 'token_type', 'embeddings'),
          norm('LayerNorm', 'embeddings', 'embeddings', size, 'layer'),
          ...dropWhere(p, 'embeddings'),
        ]),
        { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
      ],
      kinds: [layer],
      layers: new Array<number>(keys.layers).fill(0),
      final: [],
      head: tokenHead(
        config,
        keys,
        {
          path: 'cls.predictions.transform',
          dense: 'dense',
          norm: 'layer_norm',
          output: 'cls.predictions.decoder',
          ownBias: true,
        },
        config.activation('hidden_act', 'silu'),
      ),
      classifier: pooled('nomic_bert', keys),
      rotaryTables: { dim: headDim, pairs: 1 },
      masks: 1,
      paddingMasks: true,
      bufferBytes: 2 * keys.positions * 8 + rotaryBufferBytes(headDim),
      alibi: false,
      peft: noPeftDefaults,
    };
  },
};
