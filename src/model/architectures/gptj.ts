import type { ConfigReader } from '../config-reader.ts';
import type { ModelDescription, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import {
  add,
  attention,
  call,
  dropout,
  heads,
  hiddenNorm,
  linear,
  peftDefaults,
  plainMlp,
  rotary,
  split,
} from './parts.ts';

/** Attention and feed-forward side by side on one norm; q and k turn as (batch, tokens, heads, dim). */
function describe(config: ConfigReader, fused: boolean): ModelDescription {
  const hiddenSize = config.count(['n_embd', 'hidden_size'], 4096);
  const headCount = config.count(['n_head', 'num_attention_heads'], 16);
  const layers = config.count(['n_layer', 'num_hidden_layers'], 28);
  const positions = config.count(['n_positions', 'max_position_embeddings'], 2048);
  const vocabSize = config.count('vocab_size', 50400);
  const inner = config.count('n_inner', 4 * hiddenSize);
  const fn = config.activation('activation_function', 'gelu_new');
  const residual = config.number('resid_pdrop', 0);
  const embedding = config.number('embd_pdrop', 0);
  config.divisible(hiddenSize, 'n_embd', headCount, 'n_head');
  const headDim = Math.floor(hiddenSize / headCount);
  if (config.raw('rotary_dim') === null) config.refuse('rotary_dim of null is not described');
  const rotaryDim = config.count('rotary_dim', 64);
  if (rotaryDim > headDim) config.refuse(`rotary_dim ${rotaryDim} is more than the ${headDim} features of a head`);
  const shape = {
    hiddenSize,
    heads: headCount,
    kvHeads: headCount,
    headDim,
    dropout: config.number('attn_pdrop', 0),
    eager: 'fp32' as const,
  };
  const project = (name: string, output: string): Op => linear(name, 'hidden_states', output, hiddenSize, hiddenSize);
  const projections: Op[] = fused
    ? [
        linear('qkv_proj', 'hidden_states', 'qkv', hiddenSize, 3 * hiddenSize),
        split('qkv', [
          ['query_states', hiddenSize],
          ['value_states', hiddenSize],
          ['key_states', hiddenSize],
        ]),
      ]
    : [project('q_proj', 'query_states'), project('k_proj', 'key_states'), project('v_proj', 'value_states')];
  const block = call('attn', { hidden_states: 'hidden_states' }, { attn_output: 'attn_outputs', attn_weights: '_' }, [
    ...projections,
    ...['query_states', 'key_states', 'value_states'].map((state) => heads(state, state)),
    rotary(shape, rotaryDim, true, { pairs: true, tables: fused ? 'indexed' : 'gathered', positions }),
    attention(shape),
    linear('out_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize),
    ...(residual > 0 ? [dropout(residual, 'attn_output', 'attn_output')] : []),
  ]);
  const mlp = plainMlp(['fc_in', 'fc_out'], hiddenSize, inner, fn, { bias: true, dropout: residual });
  return {
    hiddenSize,
    vocabSize,
    layersPath: 'transformer.h',
    embedding: [
      { op: 'embedding', name: 'wte', rows: vocabSize, size: hiddenSize, by: 'tokens', output: 'inputs_embeds' },
      { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
      ...(embedding > 0 ? [dropout(embedding, 'hidden_states', 'hidden_states')] : []),
    ],
    kinds: [
      [
        { op: 'assign', input: 'hidden_states', output: 'residual' },
        hiddenNorm('ln_1', hiddenSize, 'layer'),
        block,
        { ...mlp, results: { hidden_states: 'feed_forward_hidden_states' } },
        add('attn_outputs', 'feed_forward_hidden_states', '$sum'),
        add('$sum', 'residual', 'hidden_states'),
      ],
    ],
    layers: new Array<number>(layers).fill(0),
    final: [hiddenNorm('ln_f', hiddenSize, 'layer')],
    head: {
      name: 'lm_head',
      bias: true,
      tied: config.flag('tie_word_embeddings', false),
      scaled: false,
      softcap: false,
    },
    rotaryTables: undefined,
    masks: 1,
    // Every layer has a table of sines of its own.
    bufferBytes: layers * positions * rotaryDim * 4,
    namesWeights: true,
    alibi: false,
    kernels: fused ? [] : ['flash'],
    peft: fused
      ? peftDefaults(['qkv_proj'])
      : peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'fc_out'], ['fc_out']),
  };
}

export const gptj: Architecture = {
  modelTypes: ['gptj'],
  source: 'transformers 5.17 models/gptj/modeling_gptj.py',
  describe: (config) => describe(config, false),
};

export const codegen: Architecture = {
  modelTypes: ['codegen'],
  source: 'transformers 5.17 models/codegen/modeling_codegen.py',
  describe: (config) => describe(config, true),
};
