import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { graniteHalf, scaledTokens } from './granite.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { activation, add, call, linear, moe, multiply, noPeftDefaults, selfAttention, split } from './parts.ts';

export const GRANITE_MOE = { hidden: 4096, intermediate: 11008, layers: 32, heads: 32, vocab: 32000 } as const;

/** `block_sparse_moe`: the largest logits, then a softmax over those. */
export const graniteExperts = (config: ConfigReader, keys: LlamaLike, output = 'hidden_states'): Op =>
  moe({
    name: 'block_sparse_moe',
    router: 'router',
    output,
    hiddenSize: keys.hiddenSize,
    intermediateSize: keys.intermediateSize,
    experts: config.count('num_local_experts', 8),
    expertsPerToken: config.count('num_experts_per_tok', 2),
    normalise: false,
    routing: { form: 'topk_softmax', wide: true },
    // PEFT converts targets for models that were renamed to Qwen's or Mixtral's layout, not for this one.
    targetNames: undefined,
    castWeights: true,
    activation: keys.activation,
  });

/** `output_linear(act(gate) * up)` with gate and up from one projection. */
export const sharedMlp = (keys: LlamaLike, size: number, output = 'hidden_states'): Op =>
  call('shared_mlp', { hidden_states: 'hidden_states' }, { hidden_states: output }, [
    linear('input_linear', 'hidden_states', 'hidden_states', keys.hiddenSize, 2 * size),
    split('hidden_states', [
      ['gate', size],
      ['up', size],
    ]),
    activation(keys.activation, 'gate', '$activated'),
    multiply('$activated', 'up', 'hidden_states'),
    linear('output_linear', 'hidden_states', 'hidden_states', size, keys.hiddenSize),
  ]);

export const graniteMoe: Architecture = {
  modelTypes: ['granitemoe', 'granitemoeshared'],
  source:
    'transformers 5.17 models/granitemoe/modeling_granitemoe.py, models/granitemoeshared/modeling_granitemoeshared.py',
  describe: (config, modelType) => {
    const keys = readLlamaKeys(config, GRANITE_MOE);
    const bias = config.flag('attention_bias', false);
    const shared = modelType === 'granitemoeshared' ? config.whole('shared_intermediate_size', 0) : 0;
    const block = selfAttention(keys.shape, { qkvBias: bias, outputBias: bias });
    const sparse: readonly Op[] =
      shared === 0
        ? [graniteExperts(config, keys)]
        : [
            graniteExperts(config, keys, 'moe_hidden_states'),
            sharedMlp(keys, shared, '$shared'),
            add('moe_hidden_states', '$shared', 'hidden_states'),
          ];
    return llamaLine(keys, {
      kinds: [
        [...graniteHalf(keys, 'input_layernorm', [block]), ...graniteHalf(keys, 'post_attention_layernorm', sparse)],
      ],
      tied: config.flag('tie_word_embeddings', false),
      scaledLogits: true,
      embeddingOps: scaledTokens(keys),
      peft: noPeftDefaults,
    });
  },
};
