import { error } from '../../core/index.ts';
import type { ConfigReader } from '../config-reader.ts';
import type { Op, Routing } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { type LatentDefaults, type LatentOptions, latentAttention, readLatentShape } from './mla.ts';
import { gatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, type RotaryForm } from './parts.ts';
import { denseFirst, expertsWithShared } from './shared-experts.ts';

interface Family {
  readonly hidden: number;
  readonly heads: number;
  readonly intermediate: number;
  readonly layers: number;
  readonly vocab: number;
  readonly moeSize: number;
  readonly experts: number;
  readonly chosen: number;
  readonly shared: number;
  readonly dense: number;
  readonly normalise: boolean;
  /** Latent sizes, where they are not DeepSeek's. */
  readonly latent?: LatentDefaults;
}

const V3: Family = {
  hidden: 7168,
  heads: 128,
  intermediate: 18432,
  layers: 61,
  vocab: 129280,
  moeSize: 2048,
  experts: 256,
  chosen: 8,
  shared: 1,
  dense: 3,
  normalise: true,
};

const V2: Family = {
  hidden: 4096,
  heads: 32,
  intermediate: 11008,
  layers: 32,
  vocab: 102400,
  moeSize: 1407,
  experts: 64,
  chosen: 6,
  shared: 2,
  dense: 0,
  normalise: false,
};

/** GLM 4.7 Flash: DeepSeek V3 with sizes of its own. */
const GLM_LITE: Family = {
  ...V3,
  hidden: 2048,
  heads: 20,
  intermediate: 10240,
  layers: 47,
  vocab: 154880,
  moeSize: 1536,
  experts: 64,
  chosen: 4,
  dense: 1,
  latent: { queryRank: 768, nopeDim: 192, valueDim: 256 },
};

const AXK1: Family = { ...V3, vocab: 163840, heads: 64, experts: 192, dense: 1 };

const MISTRAL_4: Family = {
  ...V3,
  hidden: 4096,
  heads: 32,
  intermediate: 12288,
  layers: 36,
  vocab: 131072,
  experts: 128,
  chosen: 4,
  dense: 0,
  latent: { queryRank: 1024, keyRank: 256, nopeDim: 64 },
};

/** Head sizes come from the latent ranks, so `head_dim` of the file counts for nothing. */
function readKeys(config: ConfigReader, family: Family): LlamaLike {
  const latent = readLatentShape(config, family, family.latent);
  const keys = readLlamaKeys(config, { ...family, headDim: latent.ropeDim });
  return { ...keys, shape: { ...keys.shape, headDim: latent.ropeDim } };
}

function layers(
  config: ConfigReader,
  keys: LlamaLike,
  family: Family,
  routing: Routing,
  attention: LatentOptions,
  experts: { readonly after?: readonly Op[]; readonly named?: boolean } = {},
) {
  const shape = readLatentShape(config, family, family.latent);
  const moeSize = config.count('moe_intermediate_size', family.moeSize);
  const sharedExperts = config.count('n_shared_experts', family.shared);
  const layer = (block: Op): readonly Op[] =>
    preNormLayer(
      { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: latentAttention(shape, attention) },
      { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
    );
  return {
    kinds: [
      layer(
        expertsWithShared({
          hiddenSize: keys.hiddenSize,
          intermediateSize: moeSize,
          experts: config.count(['n_routed_experts', 'num_local_experts'], family.experts),
          expertsPerToken: config.count('num_experts_per_tok', family.chosen),
          shared: moeSize * sharedExperts,
          normalise: family.normalise && config.flag('norm_topk_prob', true),
          routing,
          activation: keys.activation,
          ...experts,
        }),
      ),
      layer(gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation)),
    ],
    order: denseFirst(config, keys.layers, family.dense),
    tied: config.flag('tie_word_embeddings', false),
    peft: noPeftDefaults,
  };
}

const turning = (config: ConfigReader): RotaryForm =>
  config.flag('rope_interleave', true) ? { turning: 'strided' } : {};

const FAMILIES: Readonly<Record<string, Family>> = {
  deepseek_v3: V3,
  // Kimi K2's own code is DeepSeek V3's; transformers has no class under its name.
  kimi_k2: V3,
  glm4_moe_lite: GLM_LITE,
  axk1: AXK1,
};

export const deepseekV3: Architecture = {
  modelTypes: Object.keys(FAMILIES),
  source:
    'transformers 5.17 models/deepseek_v3/modeling_deepseek_v3.py, models/glm4_moe_lite/modeling_glm4_moe_lite.py, models/axk1/modeling_axk1.py',
  describe: (config, modelType) => {
    const family = FAMILIES[modelType]!;
    const keys = readKeys(config, family);
    const byDefault = modelType === 'glm4_moe_lite' ? 1 : 8;
    const routing: Routing = { form: 'sigmoid_groups', groups: config.count('n_group', byDefault) };
    // A.X K1 norms what its experts hand back.
    const experts =
      modelType === 'axk1' ? { after: [hiddenNorm('post_mlp_layernorm', keys.hiddenSize)], named: false } : {};
    return llamaLine(keys, layers(config, keys, family, routing, { rotary: turning(config) }, experts));
  },
};

export const mistral4: Architecture = {
  modelTypes: ['mistral4'],
  source: 'transformers 5.17 models/mistral4/modeling_mistral4.py',
  describe: (config) => {
    const keys = readKeys(config, MISTRAL_4);
    const routing: Routing = { form: 'softmax_groups', groups: config.count('n_group', 1), narrow: true };
    const attention: LatentOptions = { rotary: turning(config), scaledQueries: true };
    return llamaLine(keys, layers(config, keys, MISTRAL_4, routing, attention, { named: false }));
  },
};

/** Latent attention in layers that are all dense. */
export const youtu: Architecture = {
  modelTypes: ['youtu'],
  source: 'transformers 5.17 models/youtu/modeling_youtu.py',
  describe: (config) => {
    const family = { ...V3, hidden: 2048, heads: 16, intermediate: 6144, layers: 32, vocab: 128256 };
    const keys = readKeys(config, family);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: latentAttention(readLatentShape(config, family), { rotary: turning(config) }),
          },
          {
            norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize),
            block: gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation),
          },
        ),
      ],
      tied: config.flag('tie_word_embeddings', true),
      peft: noPeftDefaults,
    });
  },
};

export const deepseekV2: Architecture = {
  modelTypes: ['deepseek_v2'],
  source: 'transformers 5.17 models/deepseek_v2/modeling_deepseek_v2.py',
  describe: (config) => {
    const keys = readKeys(config, V2);
    if (config.flag('mlp_bias', false)) config.refuse('a DeepSeek V2 with mlp_bias is not described');
    const method = config.raw('topk_method') ?? 'greedy';
    if (method !== 'greedy' && method !== 'group_limited_greedy') {
      config.problems.push(
        error(
          'bad-model-config',
          `topk_method ${JSON.stringify(method)} of the model config is not one DeepSeek V2 has`,
          {
            help: 'use greedy or group_limited_greedy',
          },
        ),
      );
    }
    const groups = method === 'group_limited_greedy' ? config.count('n_group', 1) : 1;
    return llamaLine(
      keys,
      layers(config, keys, V2, { form: 'softmax_groups', groups }, { rotary: { turning: 'complex' } }),
    );
  },
};
