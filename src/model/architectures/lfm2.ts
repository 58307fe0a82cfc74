import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import {
  activation,
  add,
  call,
  hiddenNorm,
  linear,
  moe,
  multiply,
  noPeftDefaults,
  norm,
  selfAttention,
  split,
} from './parts.ts';

/** Two gates around a short convolution over the tokens. */
function shortConvolution(size: number, kernel: number, bias: boolean): Op {
  return call('conv', { normed: 'hidden_states' }, { y: 'hidden_states' }, [
    linear('in_proj', 'hidden_states', 'BCx', size, 3 * size, bias),
    split('BCx', [
      ['B', size],
      ['C', size],
      ['x', size],
    ]),
    multiply('B', 'x', 'hidden_states'),
    {
      op: 'convolution',
      name: 'conv',
      channels: size,
      kernel,
      bias,
      activation: undefined,
      castsInput: true,
      input: 'hidden_states',
      output: 'hidden_states',
    },
    multiply('C', 'hidden_states', 'y'),
    { op: 'copy', input: 'y', output: 'y' },
    linear('out_proj', 'y', 'y', size, size, bias),
  ]);
}

/** `w2(silu(w1(x)) * w3(x))`. */
const feedForward = (hiddenSize: number, size: number): Op =>
  call('feed_forward', { normed: 'x' }, { out: '$fed' }, [
    linear('w1', 'x', '$gate', hiddenSize, size),
    activation('silu', '$gate', '$activated'),
    linear('w3', 'x', '$up', hiddenSize, size),
    multiply('$activated', '$up', '$product'),
    linear('w2', '$product', 'out', size, hiddenSize),
  ]);

/** LFM2's own size rule for the feed-forward layers. */
function adjusted(config: ConfigReader, size: number): number {
  if (!config.flag('block_auto_adjust_ff_dim', true)) return size;
  const multiple = config.count('block_multiple_of', 256);
  const multiplier = config.raw('block_ffn_dim_multiplier');
  const reduced = Math.trunc((2 * size) / 3);
  if (multiplier === null) return reduced;
  const scaled = Math.trunc(config.number('block_ffn_dim_multiplier', 1) * reduced);
  return multiple * Math.ceil(scaled / multiple);
}

function layer(keys: LlamaLike, mixer: Op, block: Op): readonly Op[] {
  return [
    { op: 'assign', input: 'hidden_states', output: 'residual' },
    norm('operator_norm', 'hidden_states', 'normed', keys.hiddenSize),
    mixer,
    { op: 'drop', names: ['normed'] },
    add('hidden_states', 'residual', 'hidden_states'),
    norm('ffn_norm', 'hidden_states', 'normed', keys.hiddenSize),
    block,
    { op: 'drop', names: ['normed'] },
    add('hidden_states', '$fed', 'hidden_states'),
  ];
}

const attentionBlock = (keys: LlamaLike): Op => {
  const block = selfAttention(keys.shape, {
    headNorm: 'rms',
    headNormNames: ['q_layernorm', 'k_layernorm'],
    outputName: 'out_proj',
  });
  return { ...block, arguments: { normed: 'hidden_states' } };
};

/** Which layers attend: `layer_types`, or those that `full_attn_idxs` lists (all by default). */
function attends(config: ConfigReader, layers: number): boolean[] {
  const named = config.layerNames('layer_types', layers, ['full_attention', 'conv']);
  if (named) return named.map((name) => name === 'full_attention');
  const listed = config.raw('full_attn_idxs');
  return Array.from({ length: layers }, (_, index) => !Array.isArray(listed) || listed.includes(index));
}

export const lfm2: Architecture = {
  modelTypes: ['lfm2', 'lfm2_moe'],
  source: 'transformers 5.17 models/lfm2/modeling_lfm2.py, models/lfm2_moe/modeling_lfm2_moe.py',
  describe: (config, modelType) => {
    const sparse = modelType === 'lfm2_moe';
    const keys = readLlamaKeys(config, {
      hidden: sparse ? 2048 : 2560,
      intermediate: sparse ? 7168 : 12288,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 65536,
    });
    const size = sparse
      ? keys.intermediateSize
      : adjusted(config, config.has('block_ff_dim') ? config.count('block_ff_dim', 1) : keys.intermediateSize);
    const mixers = [
      shortConvolution(keys.hiddenSize, config.count('conv_L_cache', 3), config.flag('conv_bias', false)),
      attentionBlock({ ...keys, shape: { ...keys.shape, dropout: 0 } }),
    ];
    const blocks: Op[] = [feedForward(keys.hiddenSize, size)];
    if (sparse) {
      blocks.push(
        moe({
          name: 'feed_forward',
          router: 'gate',
          input: 'normed',
          output: '$fed',
          hiddenSize: keys.hiddenSize,
          intermediateSize: config.count('moe_intermediate_size', 1792),
          experts: config.count('num_experts', 32),
          expertsPerToken: config.count('num_experts_per_tok', 4),
          normalise: config.flag('norm_topk_prob', true),
          routing: { form: 'sigmoid', corrected: config.flag('use_expert_bias', true) },
          // PEFT converts targets for models that were renamed to Qwen's or Mixtral's layout, not for this one.
          targetNames: undefined,
          castWeights: false,
          activation: 'silu',
        }),
      );
    }
    const dense = sparse ? config.whole('num_dense_layers', 2) : keys.layers;
    const tied = config.flag('tie_word_embeddings', true);
    const line = llamaLine(keys, {
      kinds: mixers.flatMap((mixer) => blocks.map((block) => layer(keys, mixer, block))),
      order: attends(config, keys.layers).map((full, index) => (full ? blocks.length : 0) + (index < dense ? 0 : 1)),
      tied: config.has('tie_embedding') ? config.flag('tie_embedding', tied) : tied,
      peft: noPeftDefaults,
    });
    config.assumptions.push('short convolutions run in plain PyTorch, as without the causal_conv1d package');
    return { ...line, final: [hiddenNorm('embedding_norm', keys.hiddenSize)] };
  },
};
