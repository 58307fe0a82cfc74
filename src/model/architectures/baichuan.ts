import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import {
  attention,
  call,
  gatedMlp,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  preNormLayer,
  rotary,
  split,
} from './parts.ts';

/** Baichuan 1 and 2: rotary embedding at 7B; at 13B ALiBi, whose config knows no max_position_embeddings. */
export const baichuan: Architecture = {
  modelTypes: ['baichuan'],
  source: 'the code published with baichuan-inc/Baichuan2-7B-Base and Baichuan2-13B-Base',
  ownCode: true,
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 11008,
      layers: 32,
      heads: 32,
      vocab: 125696,
    });
    const alibi = !config.has('max_position_embeddings') && config.has('model_max_length');
    const { hiddenSize } = keys;
    const shape = { ...keys.shape, ...(alibi ? { eager: 'biased_in_place' as const } : {}) };
    const block = call(
      'self_attn',
      { hidden_states: 'hidden_states' },
      { attn_output: 'hidden_states', attn_weights: '_' },
      [
        linear('W_pack', 'hidden_states', 'proj', hiddenSize, 3 * hiddenSize),
        split(
          'proj',
          [
            ['query_states', hiddenSize],
            ['key_states', hiddenSize],
            ['value_states', hiddenSize],
          ],
          'slices',
        ),
        ...['query_states', 'key_states', 'value_states'].map((state) => heads(state, state)),
        ...(alibi ? [] : [rotary(shape, shape.headDim, false, { wide: 'before' })]),
        attention(shape),
        linear('o_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize),
      ],
    );
    return {
      ...llamaLine(keys, {
        kinds: [
          preNormLayer(
            { norm: hiddenNorm('input_layernorm', hiddenSize), block },
            {
              norm: hiddenNorm('post_attention_layernorm', hiddenSize),
              block: gatedMlp(hiddenSize, keys.intermediateSize, keys.activation),
            },
          ),
        ],
        tied: config.flag('tie_word_embeddings', false),
        peft: noPeftDefaults,
      }),
      ...(alibi ? { alibi, maskHeads: shape.heads, rotaryTables: undefined, bufferBytes: 0 } : {}),
    };
  },
};
