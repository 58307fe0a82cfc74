import type { ConfigReader } from '../config-reader.ts';
import type { ModelDescription, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { add, gatedMlp, hiddenNorm, noPeftDefaults, type SelfAttentionOptions, selfAttention } from './parts.ts';

const DEFAULTS = { hidden: 8192, intermediate: 22528, layers: 40, heads: 64, vocab: 256000 };

/** One norm, attention and feed-forward beside each other, both added to the residual stream. */
function parallelLayer(keys: LlamaLike, options: SelfAttentionOptions): readonly Op[] {
  const block = selfAttention(keys.shape, { ...options, rotaryForm: { pairs: true, wide: 'before' } });
  const mlp = gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation);
  return [
    { op: 'assign', input: 'hidden_states', output: 'residual' },
    hiddenNorm('input_layernorm', keys.hiddenSize, 'layer_written'),
    { ...block, results: { attn_output: 'hidden_states_attention', attn_weights: '_' } },
    { ...mlp, results: { down_proj: 'hidden_states_mlp' } },
    add('residual', 'hidden_states_attention', '$sum'),
    add('$sum', 'hidden_states_mlp', 'hidden_states'),
  ];
}

const cohereLine = (
  config: ConfigReader,
  keys: LlamaLike,
  parts: Pick<Parameters<typeof llamaLine>[1], 'kinds' | 'order' | 'masks'>,
): ModelDescription =>
  llamaLine(keys, {
    ...parts,
    tied: config.flag('tie_word_embeddings', true),
    norm: 'layer_written',
    scaledLogits: true,
    peft: noPeftDefaults,
  });

export const cohere: Architecture = {
  modelTypes: ['cohere'],
  source: 'transformers 5.17 models/cohere/modeling_cohere.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, DEFAULTS);
    const bias = config.flag('attention_bias', false);
    const normed: SelfAttentionOptions = config.flag('use_qk_norm', false)
      ? { headNorm: 'layer_written', headNormBeforeHeads: true, headNormPerHead: true }
      : {};
    return cohereLine(config, keys, { kinds: [parallelLayer(keys, { qkvBias: bias, outputBias: bias, ...normed })] });
  },
};

export const cohere2: Architecture = {
  modelTypes: ['cohere2'],
  source: 'transformers 5.17 models/cohere2/modeling_cohere2.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, DEFAULTS);
    const bias = config.flag('attention_bias', false);
    const options = { qkvBias: bias, outputBias: bias };
    const types = config.layerNames('layer_types', keys.layers, ['sliding_attention', 'full_attention']);
    const pattern = config.count('sliding_window_pattern', 4);
    // Layers without a window do not turn their heads.
    const turns = (index: number): boolean =>
      (types ? types[index] === 'sliding_attention' : (index + 1) % pattern !== 0) &&
      config.raw('sliding_window') !== null;
    return cohereLine(config, keys, {
      kinds: [parallelLayer(keys, options), parallelLayer(keys, { ...options, rotary: false })],
      order: Array.from({ length: keys.layers }, (_, index) => (turns(index) ? 0 : 1)),
      masks: 2,
    });
  },
};
