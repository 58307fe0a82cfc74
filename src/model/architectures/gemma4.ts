import type { ConfigReader } from '../config-reader.ts';
import type { ModelDescription, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { scaledEmbedding } from './gemma.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { add, call, gatedMlp, hiddenNorm, linear, moe, multiply, noPeftDefaults, norm } from './parts.ts';
import { gatePerLayer, ownVector, type PerLayerInputs, perLayerEmbedding } from './per-layer-inputs.ts';
import { carriedNames, groupLayers, keyRoles, type LayerPlace, sharedKeyAttention } from './shared-keys.ts';

/** Experts beside the feed-forward block, on what entered it; the router norms and scales its own input. */
function expertsBeside(config: ConfigReader, keys: LlamaLike): readonly Op[] {
  const { hiddenSize } = keys;
  const experts = config.count('num_experts', 1);
  const wide = (name: string, input: string, output: string): Op => norm(name, input, output, hiddenSize, 'rms_wide');
  return [
    wide('post_feedforward_layernorm_1', 'hidden_states', 'hidden_states_1'),
    call('router', { residual: 'hidden_states' }, { expert_scores: 'expert_scores' }, [
      norm('norm', 'hidden_states', 'hidden_states', hiddenSize, 'rms_bare'),
      { op: 'parameter', name: 'scale', elements: hiddenSize, output: 'scale' },
      multiply('hidden_states', 'scale', '$weighted'),
      { op: 'scale', input: '$weighted', output: 'hidden_states' },
      linear('proj', 'hidden_states', 'expert_scores', hiddenSize, experts),
      { op: 'parameter', name: 'per_expert_scale', elements: experts },
    ]),
    wide('pre_feedforward_layernorm_2', 'residual', 'hidden_states_2'),
    moe({
      name: '',
      router: 'router',
      logits: 'expert_scores',
      input: 'hidden_states_2',
      output: 'hidden_states_2',
      hiddenSize,
      intermediateSize: config.count('moe_intermediate_size', 1),
      experts,
      expertsPerToken: config.count('top_k_experts', 1),
      normalise: true,
      targetNames: undefined,
      castWeights: false,
      activation: keys.activation,
    }),
    wide('post_feedforward_layernorm_2', 'hidden_states_2', 'hidden_states_2'),
    add('hidden_states_1', 'hidden_states_2', 'hidden_states'),
  ];
}

function layer(
  config: ConfigReader,
  keys: LlamaLike,
  place: LayerPlace,
  perLayer: PerLayerInputs | undefined,
): readonly Op[] {
  const { hiddenSize } = keys;
  const full = place.type === 'full_attention';
  const sameValues = full && config.flag('attention_k_eq_v', false);
  const kvHeads =
    sameValues && config.has('num_global_key_value_heads')
      ? config.count('num_global_key_value_heads', 1)
      : keys.shape.kvHeads;
  const shape = { ...keys.shape, kvHeads, headDim: full ? config.count('global_head_dim', 512) : keys.shape.headDim };
  const doubled = config.flag('use_double_wide_mlp', false) && place.role === 'reads';
  const wide = (name: string): Op => hiddenNorm(name, hiddenSize, 'rms_wide');
  const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
  const sum = add('residual', 'hidden_states', 'hidden_states');
  return [
    ...(perLayer ? [ownVector(perLayer)] : []),
    hold,
    wide('input_layernorm'),
    sharedKeyAttention(shape, place, { bias: config.flag('attention_bias', false), valuesAreKeys: sameValues }),
    wide('post_attention_layernorm'),
    sum,
    hold,
    wide('pre_feedforward_layernorm'),
    gatedMlp(hiddenSize, keys.intermediateSize * (doubled ? 2 : 1), keys.activation),
    ...(config.flag('enable_moe_block', false) ? expertsBeside(config, keys) : []),
    wide('post_feedforward_layernorm'),
    sum,
    ...(perLayer ? [hold, ...gatePerLayer(perLayer, 'hidden_states', keys.activation), sum] : []),
    // A buffer of one number.
    { op: 'scale', inPlace: true, input: 'hidden_states', output: 'hidden_states' },
  ];
}

export const gemma4Text = (config: ConfigReader): ModelDescription => {
  const keys = readLlamaKeys(config, {
    hidden: 2304,
    intermediate: 9216,
    layers: 30,
    heads: 8,
    kvHeads: 4,
    headDim: 256,
    vocab: 262144,
    activation: 'gelu_pytorch_tanh',
    activationKeys: ['hidden_activation'],
  });
  const size = config.whole('hidden_size_per_layer_input', 256);
  const perLayer: PerLayerInputs | undefined =
    size === 0
      ? undefined
      : {
          hiddenSize: keys.hiddenSize,
          size,
          layers: keys.layers,
          vocab: config.count('vocab_size_per_layer_input', 262144),
          inPlace: false,
        };
  const places = keyRoles(config, keys.layers, 6, config.whole('num_kv_shared_layers', 0));
  const { kinds, layers } = groupLayers(places, (place) => layer(config, keys, place, perLayer));
  const line = llamaLine(keys, {
    kinds,
    order: layers,
    tied: config.flag('tie_word_embeddings', true),
    norm: 'rms_wide',
    softcap: config.number('final_logit_softcapping', 0) > 0,
    rotaryPairs: 2,
    masks: 2,
    embeddingOps: [...scaledEmbedding(keys), ...(perLayer ? perLayerEmbedding(perLayer) : [])],
    // One number a layer, and the two embeddings' scales.
    extraBufferBytes: 512 * keys.layers,
    peft: noPeftDefaults,
  });
  return {
    ...line,
    carriedLinger: true,
    carried: carriedNames(places),
    ...(perLayer ? { shares: ['per_layer_inputs'] } : {}),
  };
};

export const gemma4: Architecture = {
  modelTypes: ['gemma4_text'],
  source: 'transformers 5.17 models/gemma4/modeling_gemma4.py',
  describe: gemma4Text,
};
