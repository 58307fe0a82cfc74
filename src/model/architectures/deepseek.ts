import { error } from '../../core/index.ts';
import type { ConfigReader } from '../config-reader.ts';
import type { Op, Routing } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { latentAttention, readLatentShape } from './mla.ts';
import { gatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, type RotaryForm } from './parts.ts';
import { expertsWithShared } from './shared-experts.ts';

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

/** Head sizes come from the latent ranks, so `head_dim` of the file counts for nothing. */
function readKeys(config: ConfigReader, family: Family): LlamaLike {
  const latent = readLatentShape(config, family);
  const keys = readLlamaKeys(config, { ...family, headDim: latent.ropeDim });
  return { ...keys, shape: { ...keys.shape, headDim: latent.ropeDim } };
}

function layers(config: ConfigReader, keys: LlamaLike, family: Family, routing: Routing, form: RotaryForm) {
  const shape = readLatentShape(config, family);
  const moeSize = config.count('moe_intermediate_size', family.moeSize);
  const sharedExperts = config.count('n_shared_experts', family.shared);
  const experts = config.count(['n_routed_experts', 'num_local_experts'], family.experts);
  const layer = (block: Op): readonly Op[] =>
    preNormLayer(
      { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: latentAttention(shape, form) },
      { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
    );
  const dense = config.whole('first_k_dense_replace', family.dense);
  return {
    kinds: [
      layer(
        expertsWithShared({
          hiddenSize: keys.hiddenSize,
          intermediateSize: moeSize,
          experts,
          expertsPerToken: config.count('num_experts_per_tok', family.chosen),
          shared: moeSize * sharedExperts,
          normalise: family.normalise && config.flag('norm_topk_prob', true),
          routing,
          activation: keys.activation,
        }),
      ),
      layer(gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation)),
    ],
    order: Array.from({ length: keys.layers }, (_, index) => (index < dense ? 1 : 0)),
    tied: config.flag('tie_word_embeddings', false),
    peft: noPeftDefaults,
  };
}

export const deepseekV3: Architecture = {
  // Kimi K2's own code is DeepSeek V3's; transformers has no class under its name.
  modelTypes: ['deepseek_v3', 'kimi_k2'],
  source: 'transformers 5.17 models/deepseek_v3/modeling_deepseek_v3.py',
  describe: (config) => {
    const keys = readKeys(config, V3);
    const routing: Routing = { form: 'sigmoid_groups', groups: config.count('n_group', 8) };
    return llamaLine(
      keys,
      layers(config, keys, V3, routing, config.flag('rope_interleave', true) ? { turning: 'strided' } : {}),
    );
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
    return llamaLine(keys, layers(config, keys, V2, { form: 'softmax_groups', groups }, { turning: 'complex' }));
  },
};
