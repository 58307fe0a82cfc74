import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { scaledTokens } from './granite.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import {
  activation,
  add,
  attention,
  call,
  gatedMlp,
  heads,
  hiddenNorm,
  linear,
  moe,
  multiply,
  noPeftDefaults,
  norm,
  PROJECTION_NAMES,
  preNormLayer,
  rotary,
} from './parts.ts';

const FORM = 'rms_weight_inside';

/** Attention whose result is weighed by a projection of what entered. */
function gatedAttention(keys: LlamaLike, bias: boolean, turns: boolean): Op {
  const { hiddenSize, heads: count, kvHeads, headDim } = keys.shape;
  const project = (name: string, state: string, groups: number, own = bias): Op =>
    linear(name, 'hidden_states', state, hiddenSize, groups * headDim, own);
  return call('self_attn', { hidden_states: 'hidden_states' }, { out: 'hidden_states', attn_weights: '_' }, [
    project('q_proj', 'query_states', count),
    project('k_proj', 'key_states', kvHeads),
    project('v_proj', 'value_states', kvHeads),
    project('gate_proj', 'gate_states', count, false),
    norm('q_norm', 'query_states', 'query_states', headDim, FORM),
    heads('query_states', 'query_states'),
    norm('k_norm', 'key_states', 'key_states', headDim, FORM),
    heads('key_states', 'key_states'),
    heads('value_states', 'value_states'),
    ...(turns ? [rotary(keys.shape)] : []),
    attention(keys.shape, 'output'),
    activation('sigmoid', 'gate_states', '$opened'),
    multiply('output', '$opened', 'output'),
    linear('o_proj', 'output', 'out', count * headDim, hiddenSize, bias),
  ]);
}

function sparse(config: ConfigReader, keys: LlamaLike): Op {
  const size = config.count('moe_intermediate_size', 1408);
  const experts = config.count('num_experts', 64);
  return call('mlp', { hidden_states: 'hidden_states' }, { $summed: 'hidden_states' }, [
    call('router', { hidden_states: 'hidden_states' }, { router_logits: 'router_logits' }, [
      linear('gate', 'hidden_states', 'router_logits', keys.hiddenSize, experts),
    ]),
    {
      ...gatedMlp(
        keys.hiddenSize,
        size * config.count('num_shared_experts', 2),
        keys.activation,
        false,
        'shared_experts',
      ),
      results: { down_proj: 'shared_output' },
    },
    moe({
      name: '',
      router: 'gate',
      logits: 'router_logits',
      output: 'routed_output',
      hiddenSize: keys.hiddenSize,
      intermediateSize: size,
      experts,
      expertsPerToken: config.count('num_experts_per_tok', 6),
      normalise: true,
      routing: { form: 'sigmoid', corrected: true, wide: true },
      // Its router is a layer of its own, which PEFT takes by its name.
      targetNames: { ...PROJECTION_NAMES, router: '' },
      castWeights: false,
      activation: keys.activation,
    }),
    add('shared_output', 'routed_output', '$summed'),
    // A correction that is a parameter without gradients.
    { op: 'parameter', name: 'expert_bias', elements: experts, untrained: true },
  ]);
}

export const afmoe: Architecture = {
  modelTypes: ['afmoe'],
  source: 'transformers 5.17 models/afmoe/modeling_afmoe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2048,
      intermediate: 6144,
      layers: 32,
      heads: 16,
      headDim: 128,
      vocab: 200192,
    });
    const bias = config.flag('attention_bias', false);
    const blocks = [gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation), sparse(config, keys)];
    const every = config.count('global_attn_every_n_layers', 4);
    const types = config.layerNames('layer_types', keys.layers, ['sliding_attention', 'full_attention']);
    const dense = config.whole('num_dense_layers', 1);
    return llamaLine(keys, {
      // Layers without a window do not turn their heads.
      kinds: [true, false].flatMap((turns) =>
        blocks.map((block) =>
          preNormLayer(
            {
              norm: hiddenNorm('input_layernorm', keys.hiddenSize, FORM),
              block: gatedAttention(keys, bias, turns),
              after: [hiddenNorm('post_attention_layernorm', keys.hiddenSize, FORM)],
            },
            {
              norm: hiddenNorm('pre_mlp_layernorm', keys.hiddenSize, FORM),
              block,
              after: [hiddenNorm('post_mlp_layernorm', keys.hiddenSize, FORM)],
            },
          ),
        ),
      ),
      order: Array.from({ length: keys.layers }, (_, index) => {
        const slides = types ? types[index] === 'sliding_attention' : (index + 1) % every !== 0;
        return (slides ? 0 : 2) + (index < dense ? 0 : 1);
      }),
      tied: config.flag('tie_word_embeddings', false),
      norm: FORM,
      masks: 2,
      ...(config.flag('mup_enabled', false) ? { embeddingOps: scaledTokens(keys) } : {}),
      peft: noPeftDefaults,
    });
  },
};
