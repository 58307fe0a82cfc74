import { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { activation, add, attention, call, dropout, heads, linear, norm, peftDefaults, split } from './parts.ts';

export const mpt: Architecture = {
  modelTypes: ['mpt'],
  source: 'transformers 5.17 models/mpt/modeling_mpt.py',
  describe: (config) => {
    const hiddenSize = config.count(['d_model', 'hidden_size'], 2048);
    const headCount = config.count(['n_heads', 'num_attention_heads'], 16);
    const layers = config.count(['n_layers', 'num_hidden_layers'], 24);
    const vocabSize = config.count('vocab_size', 50368);
    config.divisible(hiddenSize, 'd_model', headCount, 'n_heads');
    const nested = config.raw('attn_config');
    const attn = new ConfigReader(
      typeof nested === 'object' && nested !== null ? (nested as Readonly<Record<string, unknown>>) : {},
    );
    const p = attn.number('attn_pdrop', 0);
    const clips = attn.number('clip_qkv', 0) > 0;
    config.problems.push(...attn.problems);
    const inner = 4 * hiddenSize;
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim: Math.floor(hiddenSize / headCount),
      dropout: p,
      eager: 'biased' as const,
    };
    const drop = (name: string): Op[] => (p > 0 ? [dropout(p, name, '$dropped')] : []);
    const dropped = (name: string): string => (p > 0 ? '$dropped' : name);
    const block = call(
      'attn',
      { layernorm_output: 'hidden_states' },
      { attn_output: 'attn_outputs', attn_weights: '_' },
      [
        linear('Wqkv', 'hidden_states', clips ? '$qkv' : 'mixed_qkv', hiddenSize, 3 * hiddenSize),
        // Not in place: a new tensor, the unclamped values are kept.
        ...(clips ? [activation('clamp', '$qkv', 'mixed_qkv')] : []),
        split('mixed_qkv', [
          ['query_states', hiddenSize],
          ['key_states', hiddenSize],
          ['value_states', hiddenSize],
        ]),
        ...['query_states', 'key_states', 'value_states'].map((state) => heads(state, state)),
        attention(shape),
        linear('out_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize),
      ],
    );
    const ffn = call('ffn', { layernorm_output: 'hidden_states', residual: 'residual' }, { output: 'hidden_states' }, [
      linear('up_proj', 'hidden_states', '$wide', hiddenSize, inner),
      activation('gelu', '$wide', 'hidden_states'),
      linear('down_proj', 'hidden_states', 'intermediate_output', inner, hiddenSize),
      ...drop('intermediate_output'),
      add(dropped('intermediate_output'), 'residual', 'output'),
    ]);
    return {
      hiddenSize,
      vocabSize,
      layersPath: 'transformer.blocks',
      embedding: [
        { op: 'embedding', name: 'wte', rows: vocabSize, size: hiddenSize, by: 'tokens', output: 'inputs_embeds' },
        { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
      ],
      kinds: [
        [
          norm('norm_1', 'hidden_states', 'layernorm_output', hiddenSize, 'layer', false),
          { op: 'assign', input: 'hidden_states', output: 'residual' },
          block,
          ...drop('attn_outputs'),
          add(dropped('attn_outputs'), 'residual', 'hidden_states'),
          norm('norm_2', 'hidden_states', 'layernorm_output', hiddenSize, 'layer', false),
          { op: 'assign', input: 'hidden_states', output: 'residual' },
          ffn,
        ],
      ],
      layers: new Array<number>(layers).fill(0),
      final: [norm('norm_f', 'hidden_states', 'hidden_states', hiddenSize, 'layer', false)],
      head: {
        name: 'lm_head',
        bias: false,
        tied: config.flag('tie_word_embeddings', true),
        scaled: false,
        softcap: false,
      },
      rotaryTables: undefined,
      masks: 1,
      bufferBytes: 0,
      namesWeights: true,
      alibi: true,
      kernels: [],
      eagerMaskWidth: 1,
      peft: peftDefaults(['Wqkv']),
    };
  },
};
