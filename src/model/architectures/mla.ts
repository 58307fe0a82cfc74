import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import { attention, call, heads, linear, norm, type RotaryForm, split } from './parts.ts';

/** Sizes of multi-head latent attention. */
export interface LatentShape {
  readonly hiddenSize: number;
  readonly heads: number;
  readonly queryRank: number | undefined;
  readonly keyRank: number;
  readonly nopeDim: number;
  readonly ropeDim: number;
  readonly valueDim: number;
  readonly bias: boolean;
  readonly dropout: number;
}

/** Sizes that a family's config class has other defaults for than DeepSeek's. */
export type LatentDefaults = Partial<
  Readonly<Record<'queryRank' | 'keyRank' | 'nopeDim' | 'ropeDim' | 'valueDim', number>>
>;

/** How a family's latent attention differs from DeepSeek's. */
export interface LatentOptions {
  readonly rotary: RotaryForm;
  /** The joined queries are multiplied by a number a position (Mistral 4). */
  readonly scaledQueries?: boolean;
}

export const readLatentShape = (
  config: ConfigReader,
  defaults: { readonly hidden: number; readonly heads: number },
  latent: LatentDefaults = {},
): LatentShape => ({
  hiddenSize: config.count('hidden_size', defaults.hidden),
  heads: config.count('num_attention_heads', defaults.heads),
  queryRank: config.raw('q_lora_rank') === null ? undefined : config.count('q_lora_rank', latent.queryRank ?? 1536),
  keyRank: config.count('kv_lora_rank', latent.keyRank ?? 512),
  nopeDim: config.count('qk_nope_head_dim', latent.nopeDim ?? 128),
  ropeDim: config.count('qk_rope_head_dim', latent.ropeDim ?? 64),
  valueDim: config.count('v_head_dim', latent.valueDim ?? 128),
  bias: config.flag('attention_bias', false),
  dropout: config.number('attention_dropout', 0),
});

/** Multi-head latent attention: queries and keys through small projections, one rotary key for all heads. */
export function latentAttention(shape: LatentShape, options: LatentOptions): Op {
  const { hiddenSize, heads: count, queryRank, keyRank, nopeDim, ropeDim, valueDim, bias } = shape;
  const headDim = nopeDim + ropeDim;
  const query: readonly Op[] =
    queryRank === undefined
      ? [linear('q_proj', 'hidden_states', 'q_states', hiddenSize, count * headDim)]
      : [
          linear('q_a_proj', 'hidden_states', '$q_latent', hiddenSize, queryRank, bias),
          norm('q_a_layernorm', '$q_latent', '$q_normed', queryRank),
          linear('q_b_proj', '$q_normed', 'q_states', queryRank, count * headDim),
        ];
  return call('self_attn', { hidden_states: 'hidden_states' }, { attn_output: 'hidden_states', attn_weights: '_' }, [
    ...query,
    heads('q_states', 'q_states'),
    split(
      'q_states',
      [
        ['q_pass', nopeDim],
        ['q_rot', ropeDim],
      ],
      'chunk_heads',
    ),
    linear('kv_a_proj_with_mqa', 'hidden_states', 'compressed_kv', hiddenSize, keyRank + ropeDim, bias),
    split('compressed_kv', [
      ['kv_nope', keyRank],
      ['k_rot', ropeDim],
    ]),
    norm('kv_a_layernorm', 'kv_nope', 'kv_nope', keyRank),
    {
      ...options.rotary,
      op: 'rotary',
      q: 'q_rot',
      k: 'k_rot',
      qHeads: count,
      kHeads: 1,
      headDim: ropeDim,
      rotaryDim: ropeDim,
      join: false,
    },
    { op: 'concatenate', inputs: ['q_pass', 'q_rot'], output: 'query_states', headMajor: true },
    ...(options.scaledQueries ? [{ op: 'scale', input: 'query_states', output: 'query_states' } satisfies Op] : []),
    call('', { kv_nope: 'kv_nope', k_rot: 'k_rot' }, { key_states: 'key_states', value_states: 'value_states' }, [
      linear('kv_b_proj', 'kv_nope', 'kv_nope', keyRank, count * (nopeDim + valueDim)),
      heads('kv_nope', 'kv_nope'),
      split(
        'kv_nope',
        [
          ['k_nope', nopeDim],
          ['value_states', valueDim],
        ],
        'chunk_heads',
      ),
      { op: 'copy_into', parts: ['k_nope', 'k_rot'], features: [nopeDim, ropeDim], heads: count, output: 'key_states' },
    ]),
    {
      ...attention({ hiddenSize, heads: count, kvHeads: count, headDim, dropout: shape.dropout }),
      valueDim,
    },
    linear('o_proj', 'attn_output', 'attn_output', count * valueDim, hiddenSize, bias),
  ]);
}
