import type { ConfigReader } from '../config-reader.ts';
import type { NormForm, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import {
  add,
  gatedMlp,
  hiddenNorm,
  moe,
  noPeftDefaults,
  PROJECTION_NAMES,
  preNormLayer,
  selfAttention,
} from './parts.ts';

/** cos and sin are fp32 whatever the model is in; q and k go back to their dtype. */
const TABLES = { wide: 'tables' } as const;

const OLMO = { hidden: 4096, intermediate: 11008, layers: 32, heads: 32, vocab: 50304 };

export const olmo: Architecture = {
  modelTypes: ['olmo'],
  source: 'transformers 5.17 models/olmo/modeling_olmo.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, OLMO);
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [
        llamaLayer(
          keys,
          { qkvBias: bias, outputBias: bias, clamp: config.has('clip_qkv'), lateHeads: true, rotaryForm: TABLES },
          false,
          'layer_fp32',
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: 'layer_fp32',
      peft: noPeftDefaults,
    });
  },
};

/** Each block's result is normed before it is added; nothing is normed before the blocks. */
const normAfterBlocks = (size: number, form: NormForm, attend: Op, feed: Op): readonly Op[] => [
  { op: 'assign', input: 'hidden_states', output: 'residual' },
  attend,
  hiddenNorm('post_attention_layernorm', size, form),
  add('residual', 'hidden_states', 'hidden_states'),
  { op: 'assign', input: 'hidden_states', output: 'residual' },
  feed,
  hiddenNorm('post_feedforward_layernorm', size, form),
  add('residual', 'hidden_states', 'hidden_states'),
];

export const olmo2: Architecture = {
  modelTypes: ['olmo2', 'olmo3'],
  source: 'transformers 5.17 models/olmo2/modeling_olmo2.py, models/olmo3/modeling_olmo3.py',
  describe: (config, modelType) => {
    const keys = readLlamaKeys(config, OLMO);
    const bias = config.flag('attention_bias', false);
    const form = 'rms_weight_inside';
    const types = config.layerNames('layer_types', keys.layers, ['sliding_attention', 'full_attention']);
    // OLMo 3 makes one pair of tables a kind of layer that it has; every fourth sees everything by default.
    const kindsOfLayer = types ? new Set(types).size : Math.min(2, Math.max(1, keys.layers - 2));
    return llamaLine(keys, {
      kinds: [
        normAfterBlocks(
          keys.hiddenSize,
          form,
          selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, projectionNorm: form, rotaryForm: TABLES }),
          gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation),
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: form,
      ...(modelType === 'olmo3' ? { rotaryPairs: kindsOfLayer, masks: 2 } : {}),
      peft: noPeftDefaults,
    });
  },
};

const experts = (config: ConfigReader, keys: LlamaLike, defaults: { count: number; chosen: number }): Op =>
  moe({
    name: 'mlp',
    router: 'gate',
    hiddenSize: keys.hiddenSize,
    intermediateSize: keys.intermediateSize,
    experts: config.count(['num_experts', 'num_local_experts'], defaults.count),
    expertsPerToken: config.count('num_experts_per_tok', defaults.chosen),
    normalise: config.flag('norm_topk_prob', false),
    targetNames: PROJECTION_NAMES,
    castWeights: true,
    activation: keys.activation,
  });

/** OLMo 2's layers with OLMoE's experts. */
export const flexOlmo: Architecture = {
  modelTypes: ['flex_olmo'],
  source: 'transformers 5.17 models/flex_olmo/modeling_flex_olmo.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, { ...OLMO, vocab: 100352 });
    const bias = config.flag('attention_bias', false);
    const form = 'rms_weight_inside';
    return llamaLine(keys, {
      kinds: [
        normAfterBlocks(
          keys.hiddenSize,
          form,
          selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, projectionNorm: form, rotaryForm: TABLES }),
          experts(config, keys, { count: 7, chosen: 5 }),
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      norm: form,
      peft: noPeftDefaults,
    });
  },
};

export const olmoe: Architecture = {
  modelTypes: ['olmoe'],
  source: 'transformers 5.17 models/olmoe/modeling_olmoe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2048,
      intermediate: 2048,
      layers: 16,
      heads: 16,
      vocab: 50304,
    });
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: selfAttention(keys.shape, {
              qkvBias: bias,
              outputBias: bias,
              projectionNorm: 'rms',
              clamp: config.has('clip_qkv'),
            }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
            block: experts(config, keys, { count: 64, chosen: 8 }),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
