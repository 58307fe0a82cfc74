import type { ConfigReader } from '../config-reader.ts';
import type { Activation, ModelDescription, NormForm, Op, PeftDefaults } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import {
  type AttentionShape,
  embedTokens,
  gatedMlp,
  hiddenNorm,
  peftDefaults,
  preNormLayer,
  rotaryBufferBytes,
  type SelfAttentionOptions,
  selfAttention,
} from './parts.ts';

export interface LlamaLike {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly shape: AttentionShape;
  readonly activation: Activation;
  readonly vocabSize: number;
}

/** Keys that every model of the Llama line has; `defaults` are those of the family's config class. */
export function readLlamaKeys(
  config: ConfigReader,
  defaults: {
    hidden: number;
    intermediate: number;
    layers: number;
    heads: number;
    /** undefined: as many as query heads. */
    kvHeads?: number;
    vocab: number;
    headDim?: number;
    activation?: Activation;
    activationKeys?: readonly string[];
    dropout?: number;
  },
): LlamaLike {
  const hiddenSize = config.count('hidden_size', defaults.hidden);
  const heads = config.count('num_attention_heads', defaults.heads);
  // null in the file means one key head a query head, whatever the family's default is.
  const kvDefault = config.raw('num_key_value_heads') === null ? heads : (defaults.kvHeads ?? heads);
  const kvHeads = config.count('num_key_value_heads', kvDefault);
  if (!config.has('head_dim') && !defaults.headDim) {
    config.divisible(hiddenSize, 'hidden_size', heads, 'num_attention_heads');
  }
  config.divisible(heads, 'num_attention_heads', kvHeads, 'num_key_value_heads');
  const headDim = config.count('head_dim', defaults.headDim ?? Math.floor(hiddenSize / heads));
  return {
    hiddenSize,
    intermediateSize: config.count('intermediate_size', defaults.intermediate),
    layers: config.count('num_hidden_layers', defaults.layers),
    shape: { hiddenSize, heads, kvHeads, headDim, dropout: config.number('attention_dropout', defaults.dropout ?? 0) },
    activation: config.activation(defaults.activationKeys ?? ['hidden_act'], defaults.activation ?? 'silu'),
    vocabSize: config.count('vocab_size', defaults.vocab),
  };
}

/** A description of the Llama line: token embedding, equal layers, final norm, head. */
export function llamaLine(
  keys: LlamaLike,
  parts: {
    readonly kinds: readonly (readonly Op[])[];
    readonly order?: readonly number[];
    readonly tied: boolean;
    readonly norm?: NormForm;
    readonly normBias?: boolean;
    readonly peft: PeftDefaults;
    readonly softcap?: boolean;
    readonly headBias?: boolean;
    readonly rotaryDim?: number;
    readonly rotaryPairs?: number;
    readonly masks?: number;
    readonly embeddingOps?: readonly Op[];
    readonly extraBufferBytes?: number;
    readonly scaledLogits?: boolean;
  },
): ModelDescription {
  const dim = parts.rotaryDim ?? keys.shape.headDim;
  const pairs = parts.rotaryPairs ?? 1;
  return {
    hiddenSize: keys.hiddenSize,
    vocabSize: keys.vocabSize,
    layersPath: 'model.layers',
    embedding: parts.embeddingOps ?? embedTokens('embed_tokens', keys.vocabSize, keys.hiddenSize),
    kinds: parts.kinds,
    layers: parts.order ?? new Array<number>(keys.layers).fill(0),
    final: [hiddenNorm('norm', keys.hiddenSize, parts.norm ?? 'rms', parts.normBias)],
    head: {
      name: 'lm_head',
      bias: parts.headBias ?? false,
      tied: parts.tied,
      scaled: parts.scaledLogits ?? false,
      softcap: parts.softcap ?? false,
    },
    rotaryTables: { dim, pairs },
    masks: parts.masks ?? 1,
    bufferBytes: rotaryBufferBytes(dim, pairs) + (parts.extraBufferBytes ?? 0),
    alibi: false,
    peft: parts.peft,
  };
}

/** Norm, attention, norm, gated feed-forward with Llama's names. */
export const llamaLayer = (
  keys: LlamaLike,
  options: SelfAttentionOptions = {},
  mlpBias = false,
  form: NormForm = 'rms',
  secondNorm = 'post_attention_layernorm',
): readonly Op[] =>
  preNormLayer(
    { norm: hiddenNorm('input_layernorm', keys.hiddenSize, form), block: selfAttention(keys.shape, options) },
    {
      norm: hiddenNorm(secondNorm, keys.hiddenSize, form),
      block: gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation, mlpBias),
    },
  );

export const llama: Architecture = {
  modelTypes: ['llama'],
  source: 'transformers 5.17 models/llama/modeling_llama.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 11008,
      layers: 32,
      heads: 32,
      vocab: 32000,
    });
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, { qkvBias: bias, outputBias: bias }, config.flag('mlp_bias', false))],
      tied: config.flag('tie_word_embeddings', false),
      peft: peftDefaults(['q_proj', 'v_proj'], ['k_proj', 'v_proj', 'down_proj'], ['down_proj']),
    });
  },
};
