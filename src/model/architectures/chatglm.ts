import type { Architecture } from './architecture.ts';
import { llamaLine } from './llama.ts';
import {
  add,
  attention,
  call,
  dropout,
  embedTokens,
  fusedGatedMlp,
  heads,
  hiddenNorm,
  linear,
  peftDefaults,
  rotary,
  split,
} from './parts.ts';

/** ChatGLM 2 and 3, GLM-4-9B in its first form. */
export const chatglm: Architecture = {
  modelTypes: ['chatglm'],
  source: 'the code published with THUDM/chatglm3-6b and THUDM/glm-4-9b-chat',
  ownCode: true,
  describe: (config) => {
    if (config.has('inner_hidden_size') || config.has('position_encoding_2d')) {
      config.refuse('the first ChatGLM (two-dimensional positions) is not described');
    }
    const hiddenSize = config.count('hidden_size', 4096);
    const headCount = config.count('num_attention_heads', 32);
    const headDim = config.count('kv_channels', 128);
    const groups = config.flag('multi_query_attention', false) ? config.count('multi_query_group_num', 1) : headCount;
    const vocabSize = config.count(['padded_vocab_size', 'vocab_size'], 65024);
    const intermediateSize = config.count('ffn_hidden_size', 13696);
    const bias = config.flag('add_bias_linear', false);
    const p = config.number('hidden_dropout', 0);
    config.divisible(headCount, 'num_attention_heads', groups, 'multi_query_group_num');
    const form = config.flag('rmsnorm', true) ? ('rms_weight_inside' as const) : ('layer' as const);
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: groups,
      headDim,
      dropout: config.number('attention_dropout', 0),
    };
    const rotaryDim = Math.floor(headDim / 2);
    const q = headCount * headDim;
    const kv = groups * headDim;
    const block = call(
      'self_attention',
      { hidden_states: 'hidden_states' },
      { attn_output: 'attention_output', attn_weights: '_' },
      [
        linear(
          'query_key_value',
          'hidden_states',
          'mixed',
          hiddenSize,
          q + 2 * kv,
          bias || config.flag('add_qkv_bias', false),
        ),
        split('mixed', [
          ['query_states', q],
          ['key_states', kv],
          ['value_states', kv],
        ]),
        ...['query_states', 'key_states', 'value_states'].map((state) => heads(state, state)),
        rotary(shape, rotaryDim, true, { pairs: true }),
        attention(shape),
        linear('dense', 'attn_output', 'attn_output', q, hiddenSize, bias),
      ],
    );
    const residual = config.flag('apply_residual_connection_post_layernorm', false);
    const mlp = fusedGatedMlp(
      hiddenSize,
      intermediateSize,
      'silu',
      { up: 'dense_h_to_4h', down: 'dense_4h_to_h' },
      bias,
    );
    const drop = (name: string) => (p > 0 ? [dropout(p, name, name)] : []);
    const tied = config.flag('tie_word_embeddings', false);
    return {
      ...llamaLine(
        {
          hiddenSize,
          intermediateSize,
          layers: config.count(['num_layers', 'num_hidden_layers'], 28),
          shape,
          activation: 'silu',
          vocabSize,
        },
        {
          kinds: [
            [
              { op: 'assign', input: 'hidden_states', output: 'residual' },
              hiddenNorm('input_layernorm', hiddenSize, form),
              ...(residual ? [{ op: 'assign', input: 'hidden_states', output: 'residual' } as const] : []),
              block,
              ...drop('attention_output'),
              add('residual', 'attention_output', 'hidden_states'),
              { op: 'assign', input: 'hidden_states', output: 'residual' },
              hiddenNorm('post_attention_layernorm', hiddenSize, form),
              ...(residual ? [{ op: 'assign', input: 'hidden_states', output: 'residual' } as const] : []),
              mlp,
              ...drop('hidden_states'),
              add('residual', 'hidden_states', 'hidden_states'),
            ],
          ],
          tied,
          rotaryDim,
          peft: peftDefaults(['query_key_value']),
        },
      ),
      layersPath: 'transformer.encoder.layers',
      embedding: embedTokens('word_embeddings', vocabSize, hiddenSize),
      final: config.flag('post_layer_norm', true) ? [hiddenNorm('final_layernorm', hiddenSize, form)] : [],
      head: { name: 'transformer.output_layer', bias, tied, scaled: false, softcap: false },
    };
  },
};
