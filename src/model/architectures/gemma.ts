import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import {
  gatedMlp,
  hiddenNorm,
  noPeftDefaults,
  peftDefaults,
  preNormLayer,
  type SelfAttentionOptions,
  selfAttention,
} from './parts.ts';

const PEFT = peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'down_proj'], ['down_proj']);

/** The embedding times the square root of the hidden size. */
export const scaledEmbedding = (keys: LlamaLike): readonly Op[] => [
  {
    op: 'embedding',
    name: 'embed_tokens',
    rows: keys.vocabSize,
    size: keys.hiddenSize,
    by: 'tokens',
    scaled: true,
    output: 'inputs_embeds',
  },
  { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
];

/** Norms before and after both blocks. */
const sandwichLayer = (keys: LlamaLike, options: SelfAttentionOptions): readonly Op[] =>
  preNormLayer(
    {
      norm: hiddenNorm('input_layernorm', keys.hiddenSize, 'rms_offset'),
      block: selfAttention(keys.shape, options),
      after: [hiddenNorm('post_attention_layernorm', keys.hiddenSize, 'rms_offset')],
    },
    {
      norm: hiddenNorm('pre_feedforward_layernorm', keys.hiddenSize, 'rms_offset'),
      block: gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation),
      after: [hiddenNorm('post_feedforward_layernorm', keys.hiddenSize, 'rms_offset')],
    },
  );

const attentionOptions = (config: ConfigReader): SelfAttentionOptions => {
  const bias = config.flag('attention_bias', false);
  return { qkvBias: bias, outputBias: bias };
};

export const gemma: Architecture = {
  modelTypes: ['gemma'],
  source: 'transformers 5.17 models/gemma/modeling_gemma.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 3072,
      intermediate: 24576,
      layers: 28,
      heads: 16,
      kvHeads: 16,
      vocab: 256000,
      headDim: 256,
      activation: 'gelu_pytorch_tanh',
    });
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, attentionOptions(config), false, 'rms_offset')],
      tied: config.flag('tie_word_embeddings', true),
      norm: 'rms_offset',
      embeddingOps: scaledEmbedding(keys),
      extraBufferBytes: 4,
      peft: PEFT,
    });
  },
};

const GEMMA_2 = {
  hidden: 2304,
  intermediate: 9216,
  layers: 26,
  heads: 8,
  kvHeads: 4,
  headDim: 256,
  activation: 'gelu_pytorch_tanh',
  activationKeys: ['hidden_activation'],
} as const;

/** VaultGemma is Gemma 2 without the norms after its blocks. */
export const gemma2: Architecture = {
  modelTypes: ['gemma2', 'vaultgemma'],
  source: 'transformers 5.17 models/gemma2/modeling_gemma2.py, models/vaultgemma/modeling_vaultgemma.py',
  describe: (config, modelType) => {
    const read = readLlamaKeys(config, { ...GEMMA_2, vocab: 256000 });
    const capped =
      config.raw('attn_logit_softcapping') === null ? false : config.number('attn_logit_softcapping', 50) > 0;
    const keys = { ...read, shape: { ...read.shape, softcap: capped } };
    return llamaLine(keys, {
      kinds: [
        modelType === 'gemma2'
          ? sandwichLayer(keys, attentionOptions(config))
          : llamaLayer(keys, attentionOptions(config), false, 'rms_offset', 'pre_feedforward_layernorm'),
      ],
      tied: config.flag('tie_word_embeddings', true),
      norm: 'rms_offset',
      softcap:
        config.raw('final_logit_softcapping') === null ? false : config.number('final_logit_softcapping', 30) > 0,
      masks: 2,
      embeddingOps: scaledEmbedding(keys),
      extraBufferBytes: 4,
      peft: modelType === 'gemma2' ? PEFT : noPeftDefaults,
    });
  },
};

export const gemma3: Architecture = {
  modelTypes: ['gemma3_text'],
  source: 'transformers 5.17 models/gemma3/modeling_gemma3.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, { ...GEMMA_2, vocab: 262208 });
    return llamaLine(keys, {
      kinds: [sandwichLayer(keys, { ...attentionOptions(config), headNorm: 'rms_offset', headNormAfterHeads: true })],
      tied: config.flag('tie_word_embeddings', true),
      norm: 'rms_offset',
      softcap: config.number('final_logit_softcapping', 0) > 0,
      rotaryPairs: 2,
      masks: 2,
      embeddingOps: scaledEmbedding(keys),
      extraBufferBytes: 4,
      peft: PEFT,
    });
  },
};
