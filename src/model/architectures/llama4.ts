import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import {
  attention,
  call,
  gatedMlp,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  norm,
  preNormLayer,
  rotary,
} from './parts.ts';

/** Heads are turned as complex numbers and normed without weights before they are told apart in memory. */
function attend(keys: LlamaLike, options: { turns: boolean; norms: boolean; scales: boolean; bias: boolean }): Op {
  const { hiddenSize, heads: count, kvHeads, headDim } = keys.shape;
  const states = ['query_states', 'key_states'];
  const project = (name: string, state: string, groups: number): Op =>
    linear(name, 'hidden_states', state, hiddenSize, groups * headDim, options.bias);
  return call('self_attn', { hidden_states: 'hidden_states' }, { attn_output: 'hidden_states', attn_weights: '_' }, [
    project('q_proj', 'query_states', count),
    project('k_proj', 'key_states', kvHeads),
    project('v_proj', 'value_states', kvHeads),
    heads('value_states', 'value_states'),
    ...(options.turns ? [rotary(keys.shape, headDim, false, { turning: 'complex' })] : []),
    ...(options.turns && options.norms
      ? states.map((state) => norm('qk_norm', state, state, headDim, 'rms_bare'))
      : []),
    ...(options.scales && !options.turns
      ? [
          { op: 'cast', like: 'fp32', input: 'query_states', output: '$wide' } as const,
          { op: 'scale', input: '$wide', output: '$scaled' } as const,
          { op: 'cast', like: { value: 'query_states' }, input: '$scaled', output: 'query_states' } as const,
        ]
      : []),
    ...states.map((state) => heads(state, state)),
    attention({ ...keys.shape, eager: 'bare' }),
    linear('o_proj', 'attn_output', 'attn_output', count * headDim, hiddenSize, options.bias),
  ]);
}

/** Every expert runs for every token; a dense one beside them. */
const sparse = (keys: LlamaLike, experts: number): Op =>
  call('feed_forward', { hidden_states: 'hidden_states' }, { out: 'hidden_states' }, [
    linear('router', 'hidden_states', 'router_logits', keys.hiddenSize, experts),
    {
      op: 'dense_experts',
      name: 'experts',
      input: 'hidden_states',
      logits: 'router_logits',
      output: 'routed_out',
      hiddenSize: keys.hiddenSize,
      intermediateSize: keys.intermediateSize,
      experts,
      activation: keys.activation,
    },
    {
      ...gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation, false, 'shared_expert'),
      results: { down_proj: 'out' },
    },
    { op: 'add_in_place', a: 'out', b: 'routed_out', output: 'out' },
  ]);

/** Which layers have experts: those listed, or every `interleave_moe_layer_step`th. */
function sparseLayers(config: ConfigReader, layers: number): readonly boolean[] {
  const listed = config.raw('moe_layers');
  const step = config.count('interleave_moe_layer_step', 1);
  return Array.from({ length: layers }, (_, index) =>
    Array.isArray(listed) ? listed.includes(index) : (index + 1) % step === 0,
  );
}

/** Which layers turn their heads: `no_rope_layers` (1: they do), or all but every fourth. */
function turningLayers(config: ConfigReader, layers: number): readonly boolean[] {
  const listed = config.raw('no_rope_layers');
  const interval = config.count('no_rope_layer_interval', 4);
  if (Array.isArray(listed) && listed.length === layers) return listed.map(Boolean);
  return Array.from({ length: layers }, (_, index) => (index + 1) % interval !== 0);
}

export const llama4: Architecture = {
  modelTypes: ['llama4_text'],
  source: 'transformers 5.17 models/llama4/modeling_llama4.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 5120,
      intermediate: 8192,
      layers: 48,
      heads: 40,
      kvHeads: 8,
      headDim: 128,
      vocab: 202048,
    });
    const blocks = [
      sparse(keys, config.count('num_local_experts', 16)),
      gatedMlp(keys.hiddenSize, config.count('intermediate_size_mlp', 16384), keys.activation, false, 'feed_forward'),
    ];
    const options = {
      norms: config.flag('use_qk_norm', true),
      scales: config.flag('attn_temperature_tuning', true),
      bias: config.flag('attention_bias', false),
    };
    const [turns, moes] = [turningLayers(config, keys.layers), sparseLayers(config, keys.layers)];
    return llamaLine(keys, {
      kinds: [true, false].flatMap((turned) =>
        blocks.map((block) =>
          preNormLayer(
            {
              norm: hiddenNorm('input_layernorm', keys.hiddenSize),
              block: attend(keys, { ...options, turns: turned }),
            },
            { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
          ),
        ),
      ),
      order: turns.map((turned, index) => (turned ? 0 : 2) + (moes[index] ? 0 : 1)),
      tied: config.flag('tie_word_embeddings', false),
      masks: 2,
      // The router is a linear layer that hands back a tuple.
      peft: { ...noPeftDefaults, ...(moes.includes(true) ? { refused: ['router'] } : {}) },
    });
  },
};
