import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { activation, add, attention, call, dropout, heads, hiddenNorm, linear, peftDefaults } from './parts.ts';

export const opt: Architecture = {
  modelTypes: ['opt'],
  source: 'transformers 5.17 models/opt/modeling_opt.py',
  describe: (config) => {
    const hiddenSize = config.count('hidden_size', 768);
    const headCount = config.count('num_attention_heads', 12);
    const inner = config.count('ffn_dim', 3072);
    const vocabSize = config.count('vocab_size', 50272);
    const layers = config.count('num_hidden_layers', 12);
    const p = config.number('dropout', 0.1);
    const bias = config.flag('enable_bias', true);
    const before = config.flag('do_layer_norm_before', true);
    const fn = config.activation('activation_function', 'relu');
    config.divisible(hiddenSize, 'hidden_size', headCount, 'num_attention_heads');
    if (config.count('word_embed_proj_dim', hiddenSize) !== hiddenSize) {
      config.refuse('an OPT with word_embed_proj_dim other than hidden_size is not described');
    }
    if (!config.flag('layer_norm_elementwise_affine', true)) {
      config.refuse('an OPT without layer norm weights is not described');
    }
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim: Math.floor(hiddenSize / headCount),
      dropout: config.number('attention_dropout', 0),
    };
    const project = (name: string, output: string): Op =>
      linear(name, 'hidden_states', output, hiddenSize, hiddenSize, bias);
    const block = call(
      'self_attn',
      { hidden_states: 'hidden_states' },
      { attn_output: 'hidden_states', attn_weights: '_' },
      [
        project('q_proj', '$query'),
        { op: 'scale', input: '$query', output: 'query_states' },
        heads('query_states', 'query_states'),
        project('k_proj', 'key_states'),
        project('v_proj', 'value_states'),
        heads('key_states', 'key_states'),
        heads('value_states', 'value_states'),
        attention(shape),
        linear('out_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize, bias),
      ],
    );
    const drop: Op[] = p > 0 ? [dropout(p, 'hidden_states', 'hidden_states')] : [];
    const first = hiddenNorm('self_attn_layer_norm', hiddenSize, 'layer');
    const second = hiddenNorm('final_layer_norm', hiddenSize, 'layer');
    const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
    const layer: Op[] = [
      hold,
      ...(before ? [first] : []),
      block,
      ...drop,
      add('residual', 'hidden_states', 'hidden_states'),
      ...(before ? [] : [first]),
      hold,
      ...(before ? [second] : []),
      linear('fc1', 'hidden_states', 'hidden_states', hiddenSize, inner, bias),
      activation(fn, 'hidden_states', 'hidden_states'),
      linear('fc2', 'hidden_states', 'hidden_states', inner, hiddenSize, bias),
      ...drop,
      add('residual', 'hidden_states', 'hidden_states'),
      ...(before ? [] : [second]),
    ];
    const positions = config.count('max_position_embeddings', 2048) + 2;
    return {
      hiddenSize,
      vocabSize,
      layersPath: 'model.decoder.layers',
      embedding: [
        {
          op: 'embedding',
          name: 'embed_tokens',
          rows: vocabSize,
          size: hiddenSize,
          by: 'tokens',
          output: 'inputs_embeds',
        },
        {
          op: 'embedding',
          name: 'embed_positions',
          rows: positions,
          size: hiddenSize,
          by: 'rows',
          output: 'pos_embeds',
        },
        add('inputs_embeds', 'pos_embeds', 'hidden_states'),
      ],
      kinds: [layer],
      layers: new Array<number>(layers).fill(0),
      final: before && !config.flag('_remove_final_layer_norm', false) ? [second] : [],
      head: {
        name: 'lm_head',
        bias: false,
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
      },
      rotaryTables: undefined,
      masks: 1,
      bufferBytes: 0,
      alibi: false,
      peft: peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'k_proj', 'fc2'], ['fc2']),
    };
  },
};
