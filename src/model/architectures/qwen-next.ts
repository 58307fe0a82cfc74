import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import {
  activation,
  attention,
  call,
  gatedMlp,
  heads,
  hiddenNorm,
  linear,
  multiply,
  noPeftDefaults,
  norm,
  preNormLayer,
  rotary,
  split,
} from './parts.ts';
import { experts, expertsWithGatedShare, layerOrder } from './qwen-moe.ts';

export const WITHOUT_FLA =
  'linear attention runs in plain PyTorch, as without the fla and causal_conv1d packages; with them it keeps less';

/** Attention whose result is weighed by a gate that comes out of the query projection. */
function gatedAttention(keys: LlamaLike, bias: boolean, rotaryDim: number): Op {
  const { hiddenSize, heads: count, kvHeads, headDim } = keys.shape;
  return call('self_attn', { hidden_states: 'hidden_states' }, { attn_output: 'hidden_states', attn_weights: '_' }, [
    linear('q_proj', 'hidden_states', '$both', hiddenSize, 2 * count * headDim, bias),
    split('$both', [
      ['query_states', count * headDim],
      ['gate', count * headDim],
    ]),
    { op: 'copy', input: 'gate', output: 'gate' },
    norm('q_norm', 'query_states', 'query_states', headDim, 'rms_offset'),
    heads('query_states', 'query_states'),
    linear('k_proj', 'hidden_states', '$key', hiddenSize, kvHeads * headDim, bias),
    norm('k_norm', '$key', 'key_states', headDim, 'rms_offset'),
    heads('key_states', 'key_states'),
    linear('v_proj', 'hidden_states', 'value_states', hiddenSize, kvHeads * headDim, bias),
    heads('value_states', 'value_states'),
    rotary(keys.shape, rotaryDim, true),
    attention(keys.shape),
    activation('sigmoid', 'gate', '$opened'),
    multiply('attn_output', '$opened', 'attn_output'),
    linear('o_proj', 'attn_output', 'attn_output', count * headDim, hiddenSize, bias),
  ]);
}

interface DeltaShape {
  readonly hiddenSize: number;
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly kernel: number;
}

/** Convolution, delta rule, gated norm and output projection; queries, keys and values enter as `mixed_qkv`. */
const deltaTail = (keys: LlamaLike, shape: DeltaShape): readonly Op[] => {
  const [keySize, valueSize] = [shape.keyHeads * shape.keyDim, shape.valueHeads * shape.valueDim];
  const times = shape.valueHeads / shape.keyHeads;
  return [
    {
      op: 'convolution',
      name: 'conv1d',
      channels: 2 * keySize + valueSize,
      kernel: shape.kernel,
      bias: false,
      activation: keys.activation,
      castsInput: true,
      input: 'mixed_qkv',
      output: 'mixed_qkv',
    },
    split('mixed_qkv', [
      ['query', keySize],
      ['key', keySize],
      ['value', valueSize],
    ]),
    activation('sigmoid', 'b', 'beta'),
    ...(times > 1 ? ['query', 'key'].map((name): Op => ({ op: 'repeat', times, input: name, output: name })) : []),
    {
      op: 'delta_rule',
      heads: shape.valueHeads,
      keyDim: shape.keyDim,
      valueDim: shape.valueDim,
      query: 'query',
      key: 'key',
      value: 'value',
      beta: 'beta',
      decay: 'a',
      output: 'core_attn_out',
    },
    {
      op: 'gated_norm',
      name: 'norm',
      size: shape.valueDim,
      gated: 'after',
      input: 'core_attn_out',
      gate: 'z',
      output: 'core_attn_out',
    },
    linear('out_proj', 'core_attn_out', 'output', valueSize, shape.hiddenSize),
  ];
};

/** Qwen3-Next: one projection for queries, keys, values and gate, interleaved by key head, so that its parts are copied out. */
function fusedDeltaNet(keys: LlamaLike, shape: DeltaShape): Op {
  const [keySize, valueSize] = [shape.keyHeads * shape.keyDim, shape.valueHeads * shape.valueDim];
  const copied = (name: string): Op => ({ op: 'copy', input: name, output: name });
  return call('linear_attn', { hidden_states: 'hidden_states' }, { output: 'hidden_states' }, [
    linear('in_proj_qkvz', 'hidden_states', 'projected_states_qkvz', shape.hiddenSize, 2 * (keySize + valueSize)),
    linear('in_proj_ba', 'hidden_states', 'projected_states_ba', shape.hiddenSize, 2 * shape.valueHeads),
    split('projected_states_qkvz', [
      ['query', keySize],
      ['key', keySize],
      ['value', valueSize],
      ['z', valueSize],
    ]),
    split('projected_states_ba', [
      ['b', shape.valueHeads],
      ['a', shape.valueHeads],
    ]),
    copied('value'),
    copied('z'),
    ...(shape.valueHeads > shape.keyHeads ? [copied('b'), copied('a')] : []),
    copied('query'),
    copied('key'),
    { op: 'concatenate', inputs: ['query', 'key', 'value'], headMajor: false, output: 'mixed_qkv' },
    ...deltaTail(keys, shape),
  ]);
}

/** Qwen 3.5: a projection each for queries, keys and values together, the gate, and the two numbers a head. */
function separateDeltaNet(keys: LlamaLike, shape: DeltaShape): Op {
  const [keySize, valueSize] = [shape.keyHeads * shape.keyDim, shape.valueHeads * shape.valueDim];
  return call('linear_attn', { hidden_states: 'hidden_states' }, { output: 'hidden_states' }, [
    linear('in_proj_qkv', 'hidden_states', 'mixed_qkv', shape.hiddenSize, 2 * keySize + valueSize),
    linear('in_proj_z', 'hidden_states', 'z', shape.hiddenSize, valueSize),
    linear('in_proj_b', 'hidden_states', 'b', shape.hiddenSize, shape.valueHeads),
    linear('in_proj_a', 'hidden_states', 'a', shape.hiddenSize, shape.valueHeads),
    ...deltaTail(keys, shape),
  ]);
}

/** Which layers attend in full: `layer_types`, or every fourth. */
function isFull(config: ConfigReader, layers: number): boolean[] {
  const named = config.layerNames('layer_types', layers, ['linear_attention', 'full_attention']);
  const interval = config.count('full_attention_interval', 4);
  return Array.from({ length: layers }, (_, index) =>
    named ? named[index] === 'full_attention' : (index + 1) % interval === 0,
  );
}

export const qwenNext: Architecture = {
  modelTypes: ['qwen3_next', 'qwen3_5_text', 'qwen3_5_moe_text'],
  source: 'transformers 5.17 models/qwen3_next/modeling_qwen3_next.py, models/qwen3_5(_moe)/modeling_qwen3_5(_moe).py',
  describe: (config, modelType) => {
    const next = modelType === 'qwen3_next';
    const sparse = modelType !== 'qwen3_5_text';
    const keys = readLlamaKeys(config, {
      hidden: modelType === 'qwen3_5_text' ? 4096 : 2048,
      intermediate: next ? 5632 : 12288,
      layers: next ? 48 : sparse ? 40 : 32,
      heads: 16,
      kvHeads: sparse ? 2 : 4,
      headDim: 256,
      vocab: next ? 151936 : 248320,
    });
    const shape: DeltaShape = {
      hiddenSize: keys.hiddenSize,
      keyHeads: config.count('linear_num_key_heads', 16),
      valueHeads: config.count('linear_num_value_heads', 32),
      keyDim: config.count('linear_key_head_dim', 128),
      valueDim: config.count('linear_value_head_dim', 128),
      kernel: config.count('linear_conv_kernel_dim', 4),
    };
    config.divisible(shape.valueHeads, 'linear_num_value_heads', shape.keyHeads, 'linear_num_key_heads');
    const rotaryDim = Math.floor(keys.shape.headDim * config.rotaryFactor(['partial_rotary_factor'], 0.25));
    const mixers = [
      next ? fusedDeltaNet(keys, shape) : separateDeltaNet(keys, shape),
      gatedAttention(keys, config.flag('attention_bias', false), rotaryDim),
    ];
    const chosen = experts(
      config,
      keys,
      next ? { size: 512, count: 512, chosen: 10 } : { size: 512, count: 256, chosen: 8 },
    );
    const blocks: Op[] = [
      expertsWithGatedShare(
        keys,
        next
          ? { ...chosen, normalise: config.flag('norm_topk_prob', true) }
          : // PEFT converts targets for models that were renamed to this layout, not for this one.
            { ...chosen, normalise: true, targetNames: undefined },
        config.count('shared_expert_intermediate_size', 512),
      ),
      gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation),
    ];
    const dense = next ? layerOrder(config, keys.layers) : new Array<number>(keys.layers).fill(sparse ? 0 : 1);
    const full = isFull(config, keys.layers);
    config.assumptions.push(WITHOUT_FLA);
    return llamaLine(keys, {
      kinds: mixers.flatMap((mixer) =>
        blocks.map((block) =>
          preNormLayer(
            { norm: hiddenNorm('input_layernorm', keys.hiddenSize, 'rms_offset'), block: mixer },
            { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize, 'rms_offset'), block },
          ),
        ),
      ),
      order: full.map((attends, index) => (attends ? 2 : 0) + (dense[index] ?? 0)),
      tied: config.flag('tie_word_embeddings', false),
      norm: 'rms_offset',
      rotaryDim,
      peft: noPeftDefaults,
    });
  },
};
