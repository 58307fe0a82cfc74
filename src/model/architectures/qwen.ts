import type { Architecture } from './architecture.ts';
import { llamaLine } from './llama.ts';
import {
  activation,
  add,
  attention,
  call,
  dropout,
  embedTokens,
  heads,
  hiddenNorm,
  linear,
  multiply,
  noPeftDefaults,
  rotary,
  split,
} from './parts.ts';

/** The first Qwen. */
export const qwen: Architecture = {
  modelTypes: ['qwen'],
  source: 'the code published with Qwen/Qwen-7B',
  ownCode: true,
  describe: (config) => {
    const hiddenSize = config.count('hidden_size', 4096);
    const headCount = config.count('num_attention_heads', 32);
    const headDim = config.count('kv_channels', 128);
    const vocabSize = config.count('vocab_size', 151936);
    // The file counts both up projections.
    const intermediateSize = Math.floor(config.count('intermediate_size', 22016) / 2);
    const bias = !config.flag('no_bias', true);
    const embedding = config.number('emb_dropout_prob', 0);
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim,
      dropout: config.number('attn_dropout_prob', 0),
    };
    const q = headCount * headDim;
    const block = call('attn', { hidden_states: 'hidden_states' }, { attn_output: 'attn_output', attn_weights: '_' }, [
      linear('c_attn', 'hidden_states', 'mixed_x_layer', hiddenSize, 3 * q, true),
      split('mixed_x_layer', [
        ['query_states', q],
        ['key_states', q],
        ['value_states', q],
      ]),
      ...['query_states', 'key_states', 'value_states'].map((state) => heads(state, state)),
      rotary(shape),
      attention(shape),
      linear('c_proj', 'attn_output', 'attn_output', q, hiddenSize, bias),
    ]);
    const mlp = call('mlp', { hidden_states: 'hidden_states' }, { output: 'mlp_output' }, [
      linear('w1', 'hidden_states', 'a1', hiddenSize, intermediateSize, bias),
      linear('w2', 'hidden_states', 'a2', hiddenSize, intermediateSize, bias),
      activation('silu', 'a2', '$gate'),
      multiply('a1', '$gate', 'intermediate_parallel'),
      linear('c_proj', 'intermediate_parallel', 'output', intermediateSize, hiddenSize, bias),
    ]);
    const tied = config.flag('tie_word_embeddings', false);
    return {
      ...llamaLine(
        {
          hiddenSize,
          intermediateSize,
          layers: config.count('num_hidden_layers', 32),
          shape,
          activation: 'silu',
          vocabSize,
        },
        {
          kinds: [
            [
              { op: 'assign', input: 'hidden_states', output: 'residual' },
              hiddenNorm('ln_1', hiddenSize),
              block,
              add('attn_output', 'residual', 'layernorm_input'),
              { op: 'assign', input: 'layernorm_input', output: 'residual' },
              { ...hiddenNorm('ln_2', hiddenSize), input: 'layernorm_input' },
              mlp,
              add('residual', 'mlp_output', 'hidden_states'),
            ],
          ],
          tied,
          peft: noPeftDefaults,
        },
      ),
      layersPath: 'transformer.h',
      embedding: [
        ...embedTokens('wte', vocabSize, hiddenSize),
        ...(embedding > 0 ? [dropout(embedding, 'hidden_states', 'hidden_states')] : []),
      ],
      final: [hiddenNorm('ln_f', hiddenSize)],
    };
  },
};
