import { error } from '../../core/index.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, moe, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const gptOss: Architecture = {
  modelTypes: ['gpt_oss'],
  source: 'transformers 5.17 models/gpt_oss/modeling_gpt_oss.py',
  describe: (config) => {
    const read = readLlamaKeys(config, {
      hidden: 2880,
      intermediate: 2880,
      layers: 36,
      heads: 64,
      kvHeads: 8,
      headDim: 64,
      vocab: 201088,
    });
    const keys = { ...read, shape: { ...read.shape, eager: 'sinks' as const } };
    const experts = config.count(['num_local_experts', 'num_experts'], 128);
    const chosen = config.count('num_experts_per_tok', 4);
    if (chosen > experts) {
      config.problems.push(
        error('bad-model-config', `num_experts_per_tok (${chosen}) is more than the ${experts} experts`),
      );
    }
    const bias = config.flag('attention_bias', true);
    const layer = preNormLayer(
      {
        norm: hiddenNorm('input_layernorm', keys.hiddenSize, 'rms_weight_inside'),
        block: selfAttention(keys.shape, { qkvBias: bias, outputBias: bias, rotaryForm: { turning: 'chunks' } }),
      },
      {
        norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize, 'rms_weight_inside'),
        block: moe({
          name: 'mlp',
          router: 'router',
          hiddenSize: keys.hiddenSize,
          intermediateSize: keys.intermediateSize,
          experts,
          expertsPerToken: chosen,
          normalise: false,
          routing: { form: 'topk_softmax', wide: false },
          biased: true,
          targetNames: undefined,
          castWeights: false,
          activation: 'silu',
        }),
      },
    );
    const line = llamaLine(keys, {
      kinds: [layer],
      tied: config.flag('tie_word_embeddings', false),
      norm: 'rms_weight_inside',
      rotaryDim: keys.shape.headDim,
      masks: 2,
      peft: noPeftDefaults,
    });
    return { ...line, kernels: ['flash'] };
  },
};
