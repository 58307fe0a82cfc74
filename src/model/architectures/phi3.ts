import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import {
  attention,
  call,
  dropout,
  fusedGatedMlp,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  preNormLayer,
  rotary,
  split,
} from './parts.ts';

export const phi3: Architecture = {
  modelTypes: ['phi3'],
  source: 'transformers 5.17 models/phi3/modeling_phi3.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 3072,
      intermediate: 8192,
      layers: 32,
      heads: 32,
      vocab: 32064,
    });
    const { hiddenSize, intermediateSize, shape } = keys;
    const q = shape.heads * shape.headDim;
    const kv = shape.kvHeads * shape.headDim;
    const rotaryDim = Math.floor(shape.headDim * config.rotaryFactor(['partial_rotary_factor'], 1));
    const residual = config.number('resid_pdrop', 0);
    const states = ['query_states', 'key_states', 'value_states'];
    const attentionBlock = call(
      'self_attn',
      { hidden_states: 'hidden_states' },
      { attn_output: 'hidden_states', attn_weights: '_' },
      [
        linear('qkv_proj', 'hidden_states', 'qkv', hiddenSize, q + 2 * kv),
        split(
          'qkv',
          [
            ['query_states', q],
            ['key_states', kv],
            ['value_states', kv],
          ],
          'slices',
        ),
        ...states.map((state) => heads(state, state)),
        rotary(shape, rotaryDim, true),
        attention(shape),
        linear('o_proj', 'attn_output', 'attn_output', q, hiddenSize),
      ],
    );
    const mlp = fusedGatedMlp(hiddenSize, intermediateSize, keys.activation);
    const after = residual > 0 ? [dropout(residual, 'hidden_states', 'hidden_states')] : [];
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          { norm: hiddenNorm('input_layernorm', hiddenSize), block: attentionBlock, after },
          { norm: hiddenNorm('post_attention_layernorm', hiddenSize), block: mlp, after },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
