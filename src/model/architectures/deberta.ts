import type { LinearOp, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dropWhere, intermediate, outputBlock, tokenTable, untiedBias } from './bert.ts';
import { activation, add, call, hiddenNorm, linear, norm, peftDefaults } from './parts.ts';

export const debertaV2: Architecture = {
  modelTypes: ['deberta-v2'],
  source: 'transformers 5.17 models/deberta_v2/modeling_deberta_v2.py',
  describe: (config) => {
    const size = config.count('hidden_size', 1536);
    const heads = config.count('num_attention_heads', 24);
    const inner = config.count('intermediate_size', 6144);
    const layers = config.count('num_hidden_layers', 24);
    const vocabSize = config.count('vocab_size', 128100);
    const positions = config.count('max_position_embeddings', 512);
    const embeddingSize = config.count('embedding_size', size);
    const types = config.number('type_vocab_size', 0);
    const fn = config.activation('hidden_act', 'gelu');
    const p = config.number('hidden_dropout_prob', 0.1);
    config.divisible(size, 'hidden_size', heads, 'num_attention_heads');
    if (config.number('conv_kernel_size', 0) > 0) config.refuse('a DeBERTa with a convolution layer is not described');
    if (!config.flag('legacy', true))
      config.refuse('a DeBERTa with legacy: false has a token head that is not described');
    const relative = config.flag('relative_attention', false);
    const buckets = config.number('position_buckets', -1);
    const furthest = config.number('max_relative_positions', -1);
    const span = relative ? (buckets > 0 ? buckets : furthest > 0 ? furthest : positions) : 0;
    const said = config.raw('pos_att_type');
    const ways = typeof said === 'string' ? said.toLowerCase().split('|') : Array.isArray(said) ? said.map(String) : [];
    const way = (name: string): boolean => relative && ways.some((each) => each.trim() === name);
    const shared = config.flag('share_att_key', false);
    const normed = String(config.raw('norm_rel_ebd') ?? 'none')
      .toLowerCase()
      .includes('layer_norm');
    const project = (name: string): LinearOp => linear(name, 'hidden_states', name, size, size, true);
    const own = (name: string, wanted: boolean): LinearOp | undefined =>
      wanted && !shared ? project(name) : undefined;
    const attend: Op = {
      op: 'disentangled',
      query: project('query_proj'),
      key: project('key_proj'),
      value: project('value_proj'),
      positionKey: own('pos_key_proj', way('c2p')),
      positionQuery: own('pos_query_proj', way('p2c')),
      contentToPosition: way('c2p'),
      positionToContent: way('p2c'),
      heads,
      headDim: Math.floor(size / heads),
      positions: span * 2,
      dropout: config.number('attention_probs_dropout_prob', 0.1),
      positionDropout: p,
      input: 'hidden_states',
      positionsInput: 'rel_embeddings',
      output: 'context_layer',
    };
    const args = { hidden_states: 'hidden_states', ...(relative ? { rel_embeddings: 'rel_embeddings' } : {}) };
    const layer: readonly Op[] = [
      call('attention', args, { attention_output: 'attention_output' }, [
        call('self', args, { context_layer: 'attention_output' }, [attend]),
        outputBlock(size, size, p, {
          states: 'attention_output',
          entered: 'hidden_states',
          result: 'attention_output',
        }),
      ]),
      intermediate(size, inner, fn),
      outputBlock(inner, size, p, {
        states: 'intermediate_output',
        entered: 'attention_output',
        result: 'hidden_states',
      }),
    ];
    const table = tokenTable;
    return {
      hiddenSize: size,
      vocabSize,
      form: 'masked',
      layersPath: 'deberta.encoder.layer',
      rootPath: 'deberta',
      keepsResults: true,
      shares: relative ? ['rel_embeddings'] : [],
      embedding: [
        call('embeddings', {}, { embeddings: 'hidden_states' }, [
          table('word_embeddings', vocabSize, embeddingSize, 'tokens', 'embeddings'),
          ...(config.flag('position_biased_input', true)
            ? [
                table('position_embeddings', positions, embeddingSize, 'positions', 'position_embeddings'),
                add('embeddings', 'position_embeddings', 'embeddings'),
              ]
            : []),
          ...(types > 0
            ? [
                { ...table('token_type_embeddings', types, embeddingSize, 'rows', 'token_type'), segments: true } as Op,
                add('embeddings', 'token_type', 'embeddings'),
              ]
            : []),
          ...(embeddingSize === size ? [] : [linear('embed_proj', 'embeddings', 'embeddings', embeddingSize, size)]),
          norm('LayerNorm', 'embeddings', 'embeddings', size, 'layer'),
          // Times the padding mask.
          { op: 'scale', input: 'embeddings', output: 'embeddings' },
          ...dropWhere(p, 'embeddings'),
        ]),
        { op: 'assign', input: 'hidden_states', output: 'embedding_output' },
        ...(relative
          ? [
              call('encoder', {}, { rel_embeddings: 'rel_embeddings' }, [
                { op: 'parameter', name: 'rel_embeddings.weight', elements: span * 2 * size, output: 'rel_embeddings' },
                ...(normed ? [norm('LayerNorm', 'rel_embeddings', 'rel_embeddings', size, 'layer')] : []),
              ]),
            ]
          : []),
      ],
      kinds: [layer],
      layers: new Array<number>(layers).fill(0),
      final: [],
      head: {
        name: 'cls.predictions.decoder',
        bias: true,
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
        ...(embeddingSize === size ? {} : { inFeatures: embeddingSize }),
        transform: [
          call('cls.predictions.transform', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
            linear('dense', 'hidden_states', 'hidden_states', size, embeddingSize, true),
            activation(fn, 'hidden_states', 'hidden_states'),
            hiddenNorm('LayerNorm', embeddingSize, 'layer'),
          ]),
          ...(config.flag('tie_word_embeddings', true) ? [] : [untiedBias(vocabSize)]),
        ],
      },
      classifier: {
        ops: [
          call('pooler', { hidden_states: 'hidden_states' }, { pooled_output: 'pooled_output' }, [
            { op: 'first_token', size, input: 'hidden_states', output: 'pooled_output' },
            ...dropWhere(config.number('pooler_dropout', 0), 'pooled_output'),
            linear('dense', 'pooled_output', 'pooled_output', size, size, true),
            activation(config.activation('pooler_hidden_act', 'gelu'), 'pooled_output', 'pooled_output'),
          ]),
          ...dropWhere(config.number('cls_dropout', p), 'pooled_output'),
          linear('classifier', 'pooled_output', 'logits', size, 2, true),
        ],
      },
      rotaryTables: undefined,
      masks: 1,
      kernels: [],
      bufferBytes: positions * 8,
      alibi: false,
      peft: peftDefaults(['query_proj', 'value_proj'], ['key_proj', 'value_proj', 'output.dense'], ['output.dense']),
    };
  },
};
