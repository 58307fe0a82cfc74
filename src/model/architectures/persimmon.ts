import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import {
  add,
  attention,
  call,
  dropout,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  norm,
  plainMlp,
  rotary,
  split,
} from './parts.ts';

export const persimmon: Architecture = {
  modelTypes: ['persimmon'],
  source: 'transformers 5.17 models/persimmon/modeling_persimmon.py',
  describe: (config) => {
    const read = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 16384,
      layers: 36,
      heads: 64,
      vocab: 262144,
      activation: 'relu2',
    });
    // One key head a query head, and heads that add up to the hidden size, whatever else the file says.
    const headDim = Math.floor(read.hiddenSize / read.shape.heads);
    const shape = { ...read.shape, kvHeads: read.shape.heads, headDim };
    const keys = { ...read, shape };
    const { hiddenSize } = keys;
    config.divisible(hiddenSize, 'hidden_size', shape.heads, 'num_attention_heads');
    const rotaryDim = Math.floor(headDim * config.rotaryFactor(['partial_rotary_factor'], 0.5));
    const p = config.number('hidden_dropout', 0);
    const normed: Op[] = config.flag('qk_layernorm', true)
      ? [
          norm('q_layernorm', 'query_states', 'query_states', headDim, 'layer'),
          norm('k_layernorm', 'key_states', 'key_states', headDim, 'layer'),
        ]
      : [];
    const block = call(
      'self_attn',
      { hidden_states: 'hidden_states' },
      { attn_output: 'hidden_states', attn_weights: '_' },
      [
        linear('query_key_value', 'hidden_states', 'fused_qkv', hiddenSize, 3 * hiddenSize, true),
        split(
          'fused_qkv',
          [
            ['query_states', hiddenSize],
            ['key_states', hiddenSize],
            ['value_states', hiddenSize],
          ],
          'slices',
        ),
        ...normed,
        heads('query_states', 'query_states'),
        heads('value_states', 'value_states'),
        heads('key_states', 'key_states'),
        rotary(shape, rotaryDim, true),
        attention(shape),
        linear('dense', 'attn_output', 'attn_output', hiddenSize, hiddenSize, true),
      ],
    );
    const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
    const layer: Op[] = [
      hold,
      hiddenNorm('input_layernorm', hiddenSize, 'layer'),
      block,
      add('residual', 'hidden_states', 'hidden_states'),
      hold,
      hiddenNorm('post_attention_layernorm', hiddenSize, 'layer'),
      plainMlp(['dense_h_to_4h', 'dense_4h_to_h'], hiddenSize, keys.intermediateSize, keys.activation, {
        bias: true,
      }),
      ...(p > 0 ? [dropout(p, 'hidden_states', 'hidden_states')] : []),
      add('hidden_states', 'residual', 'hidden_states'),
    ];
    return {
      ...llamaLine(keys, {
        kinds: [layer],
        tied: config.flag('tie_word_embeddings', false),
        rotaryDim,
        peft: noPeftDefaults,
      }),
      final: [hiddenNorm('final_layernorm', hiddenSize, 'layer')],
    };
  },
};
