import type { ConfigReader } from '../config-reader.ts';
import type { ModelDescription, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { fusedGatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const glm: Architecture = {
  modelTypes: ['glm', 'glm4'],
  source: 'transformers 5.17 models/glm/modeling_glm.py, models/glm4/modeling_glm4.py',
  describe,
};

/** The text model of GLM 4.1V and 4.6V: GLM 4's layers, positions of three parts for every row. */
export const glm4vText: Architecture = {
  modelTypes: ['glm4v_text'],
  source: 'transformers 5.17 models/glm4v/modeling_glm4v.py',
  describe,
};

function describe(config: ConfigReader, modelType: string): ModelDescription {
  const inVision = modelType === 'glm4v_text';
  const keys = readLlamaKeys(config, {
    hidden: 4096,
    intermediate: 13696,
    layers: 40,
    heads: 32,
    kvHeads: 2,
    vocab: 151552,
    ...(inVision ? {} : { headDim: 128 }),
  });
  const { hiddenSize } = keys;
  const rotaryDim = Math.floor(keys.shape.headDim * config.rotaryFactor(['partial_rotary_factor'], inVision ? 1 : 0.5));
  // GLM 4 norms each block's result as well.
  const after = (name: string): readonly Op[] => (modelType === 'glm' ? [] : [hiddenNorm(name, hiddenSize)]);
  const line = llamaLine(keys, {
    kinds: [
      preNormLayer(
        {
          norm: hiddenNorm('input_layernorm', hiddenSize),
          block: selfAttention(keys.shape, {
            qkvBias: inVision || config.flag('attention_bias', true),
            rotaryDim,
            alwaysJoin: true,
            rotaryForm: inVision ? { pairs: true } : { pairs: true, tables: 'repeated' },
          }),
          after: after('post_self_attn_layernorm'),
        },
        {
          norm: hiddenNorm('post_attention_layernorm', hiddenSize),
          block: fusedGatedMlp(hiddenSize, keys.intermediateSize, keys.activation),
          after: after('post_mlp_layernorm'),
        },
      ),
    ],
    tied: config.flag('tie_word_embeddings', false),
    rotaryDim,
    peft: noPeftDefaults,
  });
  return inVision ? { ...line, rotaryTables: { dim: rotaryDim, pairs: 1, perRow: true } } : line;
}
