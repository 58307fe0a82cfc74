import { error } from '../../core/index.ts';
import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import {
  activation,
  add,
  call,
  gatedMlp,
  hiddenNorm,
  linear,
  moe,
  multiply,
  noPeftDefaults,
  PROJECTION_NAMES,
  preNormLayer,
  type SelfAttentionOptions,
  selfAttention,
} from './parts.ts';

/** Which layers are dense: those listed, and those that `decoder_sparse_step` skips. */
export function layerOrder(config: ConfigReader, layers: number): number[] {
  const step = config.count('decoder_sparse_step', 1);
  const listed = config.raw('mlp_only_layers') ?? [];
  if (!Array.isArray(listed) || !listed.every((entry) => Number.isInteger(entry))) {
    config.problems.push(
      error('bad-model-config', 'mlp_only_layers of the model config must be a list of layer numbers'),
    );
    return [];
  }
  return Array.from({ length: layers }, (_, index) => (listed.includes(index) || (index + 1) % step !== 0 ? 1 : 0));
}

function sparseLayer(keys: LlamaLike, options: SelfAttentionOptions, block: Op): readonly Op[] {
  return preNormLayer(
    { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape, options) },
    { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
  );
}

export const experts = (
  config: ConfigReader,
  keys: LlamaLike,
  defaults: { size: number; count: number; chosen: number },
) => ({
  router: 'gate',
  hiddenSize: keys.hiddenSize,
  intermediateSize: config.count('moe_intermediate_size', defaults.size),
  experts: config.count(['num_experts', 'num_local_experts'], defaults.count),
  expertsPerToken: config.count('num_experts_per_tok', defaults.chosen),
  normalise: config.flag('norm_topk_prob', false),
  targetNames: PROJECTION_NAMES,
  castWeights: true,
  activation: keys.activation,
});

export const qwen2Moe: Architecture = {
  modelTypes: ['qwen2_moe'],
  source: 'transformers 5.17 models/qwen2_moe/modeling_qwen2_moe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2048,
      intermediate: 5632,
      layers: 24,
      heads: 16,
      kvHeads: 16,
      vocab: 151936,
    });
    const options = { qkvBias: config.flag('qkv_bias', true) };
    const shared = config.count('shared_expert_intermediate_size', 5632);
    const block = expertsWithGatedShare(
      keys,
      {
        ...experts(config, keys, { size: 1408, count: 60, chosen: 4 }),
        // PEFT converts targets for models that were renamed to this layout, not for this one.
        targetNames: undefined,
      },
      shared,
    );
    return llamaLine(keys, {
      kinds: [sparseLayer(keys, options, block), llamaLayer(keys, options)],
      order: layerOrder(config, keys.layers),
      tied: config.flag('tie_word_embeddings', false),
      masks: config.flag('use_sliding_window', false) ? 2 : 1,
      peft: noPeftDefaults,
    });
  },
};

/** Experts, and beside them a dense one whose result a gate weighs (Qwen 2 MoE, Qwen3-Next). */
export function expertsWithGatedShare(
  keys: LlamaLike,
  shape: Omit<Parameters<typeof moe>[0], 'name' | 'input' | 'output'>,
  shared: number,
): Op {
  const dense = gatedMlp(keys.hiddenSize, shared, keys.activation, false, 'shared_expert');
  return call('mlp', { hidden_states: 'hidden_states' }, { expert_output: 'hidden_states' }, [
    { op: 'assign', input: 'hidden_states', output: 'flat' },
    { ...dense, arguments: { flat: 'x' }, results: { down_proj: 'shared_expert_output' } },
    moe({ ...shape, name: '', input: 'flat', output: 'expert_output' }),
    linear('shared_expert_gate', 'flat', '$gate', keys.hiddenSize, 1),
    activation('sigmoid', '$gate', '$share'),
    multiply('$share', 'shared_expert_output', 'shared_expert_output'),
    add('expert_output', 'shared_expert_output', 'expert_output'),
  ]);
}

export const qwen3Moe: Architecture = {
  modelTypes: ['qwen3_moe', 'mellum'],
  source: 'transformers 5.17 models/qwen3_moe/modeling_qwen3_moe.py, models/mellum/modeling_mellum.py',
  describe: (config, modelType) => {
    const mellum = modelType === 'mellum';
    const keys = readLlamaKeys(config, {
      hidden: mellum ? 2304 : 2048,
      intermediate: mellum ? 7168 : 6144,
      layers: mellum ? 28 : 24,
      heads: 32,
      kvHeads: 4,
      vocab: mellum ? 98304 : 151936,
      ...(mellum ? { headDim: 128 } : {}),
    });
    const windows = mellum
      ? config.layerNames('layer_types', keys.layers, ['full_attention', 'sliding_attention'])
      : [];
    const blocks = mellum ? config.layerNames('mlp_layer_types', keys.layers, ['dense', 'sparse']) : undefined;
    // Mellum makes tables and a mask for each kind of layer that it has.
    const kindsOfLayer = Math.max(1, new Set(windows).size);
    const bias = config.flag('attention_bias', false);
    const options: SelfAttentionOptions = { qkvBias: bias, outputBias: bias, headNorm: 'rms' };
    const sparse = experts(
      config,
      keys,
      mellum ? { size: 896, count: 64, chosen: 8 } : { size: 768, count: 128, chosen: 8 },
    );
    const block = moe({ ...sparse, normalise: config.flag('norm_topk_prob', mellum), name: 'mlp' });
    return llamaLine(keys, {
      kinds: [sparseLayer(keys, options, block), llamaLayer(keys, options)],
      order: blocks ? blocks.map((name) => (name === 'dense' ? 1 : 0)) : layerOrder(config, keys.layers),
      tied: config.flag('tie_word_embeddings', false),
      masks: kindsOfLayer,
      rotaryPairs: kindsOfLayer,
      peft: noPeftDefaults,
    });
  },
};
