import type { Origin, TrainingSpec } from '../../spec/index.ts';
import { toBoolean, toInteger, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';

/**
 * The architecture that the flags spell out, in transformers' words; absent where they do not say all of it, or where it has
 * no counterpart there (experts). Source: megatron/core/transformer/transformer_config.py, megatron/training/arguments.py.
 */
export function readModel(reader: SettingReader, tensorParallel: number): Pick<TrainingSpec, 'modelConfig'> {
  const number = (key: string): number | undefined => reader.given([key], toInteger(1))?.value;
  const on = (key: string): boolean => reader.given([key], toBoolean)?.value === true;
  const layers = reader.given(['num_layers'], toInteger(1));
  const [hidden, heads, words] = [number('hidden_size'), number('num_attention_heads'), number('vocab_size')];
  const positions = number('max_position_embeddings') ?? number('seq_length');
  const inner = number('ffn_hidden_size');
  const groups = on('group_query_attention') ? (number('num_query_groups') ?? 1) : heads;
  const step = (number('make_vocab_size_divisible_by') ?? 128) * tensorParallel;
  const tied = !on('untie_embeddings_and_output_weights');
  const rotary = reader.given(['position_embedding_type'], toText)?.value === 'rope';
  const rms = reader.given(['normalization'], toText)?.value === 'RMSNorm';
  const gated = on('swiglu');
  const headSize = number('kv_channels');
  reader.note('rotary_base', 'disable_bias_linear', 'num_experts');
  if (!layers || !hidden || !heads || !words || !positions || number('num_experts')) return {};
  const vocabulary = Math.ceil(words / step) * step;
  const origin: Origin = layers.origin;
  if (gated && rms && rotary) {
    return {
      modelConfig: {
        value: {
          model_type: 'llama',
          hidden_size: hidden,
          intermediate_size: inner ?? Math.floor((4 * hidden * 2) / 3 / 64) * 64,
          num_hidden_layers: layers.value,
          num_attention_heads: heads,
          num_key_value_heads: groups,
          head_dim: headSize ?? hidden / heads,
          vocab_size: vocabulary,
          max_position_embeddings: positions,
          tie_word_embeddings: tied,
        },
        origin,
      },
    };
  }
  if (gated || rms || rotary || !tied || groups !== heads) return {};
  return {
    modelConfig: {
      value: {
        model_type: 'gpt2',
        n_embd: hidden,
        n_inner: inner ?? 4 * hidden,
        n_layer: layers.value,
        n_head: heads,
        n_positions: positions,
        vocab_size: vocabulary,
      },
      origin,
    },
  };
}
