import type { ConfigReader } from '../config-reader.ts';
import type { Activation, CallOp, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { MAMBA_REFUSED, mamba2Mixer, WITHOUT_MAMBA_SSM } from './mamba2.ts';
import { add, call, embedTokens, hiddenNorm, moe, norm, peftDefaults, plainMlp, selfAttention } from './parts.ts';

/** The kinds of block, in the order of `kinds`, with the letters and the older names that files have for them. */
const BLOCKS = [
  { letter: 'M', names: ['linear_attention', 'mamba'] },
  { letter: '*', names: ['full_attention', 'attention'] },
  { letter: '-', names: ['mlp'] },
  { letter: 'E', names: ['moe'] },
] as const;

/** The kind of every layer: `layers_block_type`, or the letters of `hybrid_override_pattern`. */
function blockKinds(config: ConfigReader): readonly number[] {
  const listed = config.raw('layers_block_type') ?? config.raw('layer_types');
  const pattern = config.raw('hybrid_override_pattern');
  const words = Array.isArray(listed)
    ? listed
    : typeof pattern === 'string'
      ? [...pattern]
      : ['linear_attention', 'moe', 'full_attention', 'mlp'];
  const kinds = words.map((word) =>
    BLOCKS.findIndex(({ letter, names }) => word === letter || (names as readonly unknown[]).includes(word)),
  );
  if (kinds.includes(-1)) config.refuse('the layers of a Nemotron H are M, *, - and E, or their names');
  return kinds.filter((kind) => kind >= 0);
}

const feedForward = (name: string, size: number, inner: number, fn: Activation, bias: boolean): CallOp =>
  plainMlp(['up_proj', 'down_proj'], size, inner, fn, { bias, unnamed: true, name });

function experts(config: ConfigReader, size: number, fn: Activation, bias: boolean): Op {
  if (config.has('moe_latent_size')) config.refuse('experts on a latent size (moe_latent_size) are not described');
  return call('mixer', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
    { op: 'assign', input: 'hidden_states', output: 'residuals' },
    moe({
      name: '',
      router: 'gate',
      hiddenSize: size,
      intermediateSize: config.count('moe_intermediate_size', 7688),
      experts: config.count(['n_routed_experts', 'num_local_experts'], 8),
      expertsPerToken: config.count('num_experts_per_tok', 2),
      normalise: config.flag('norm_topk_prob', true),
      routing: { form: 'sigmoid_groups', groups: config.count('n_group', 1) },
      targetNames: undefined,
      castWeights: false,
      activation: fn,
      ungated: true,
    }),
    {
      ...feedForward('shared_experts', size, config.count('moe_shared_expert_intermediate_size', 7688), fn, bias),
      arguments: { residuals: 'hidden_states' },
      results: { hidden_states: '$shared' },
    },
    add('hidden_states', '$shared', 'hidden_states'),
  ]);
}

/** One block a layer: Mamba 2, attention, feed-forward or experts. */
export const nemotronH: Architecture = {
  modelTypes: ['nemotron_h'],
  source: 'transformers 5.17 models/nemotron_h/modeling_nemotron_h.py',
  describe: (config) => {
    const hiddenSize = config.count('hidden_size', 4096);
    const vocabSize = config.count('vocab_size', 131072);
    const heads = config.count('num_attention_heads', 32);
    const fn = config.activation('mlp_hidden_act', 'relu2');
    const bias = config.flag('mlp_bias', false);
    const mixers: readonly Op[] = [
      mamba2Mixer(
        {
          hiddenSize,
          heads: config.count('mamba_num_heads', 128),
          headDim: config.count('mamba_head_dim', 64),
          groups: config.count(['mamba_n_groups', 'n_groups'], 8),
          stateSize: config.count('ssm_state_size', 128),
          kernel: config.count(['mamba_d_conv', 'conv_kernel'], 4),
          chunk: config.count(['mamba_chunk_size', 'chunk_size'], 128),
          bias: config.flag('use_bias', false),
          convBias: config.flag('mamba_conv_bias', config.flag('use_conv_bias', true)),
          activation: config.activation('mamba_hidden_act', 'silu'),
        },
        'mixer',
      ),
      selfAttention(
        {
          hiddenSize,
          heads,
          kvHeads: config.count('num_key_value_heads', config.raw('num_key_value_heads') === null ? heads : 8),
          headDim: config.count('head_dim', 128),
          dropout: config.number('attention_dropout', 0),
        },
        { rotary: false },
        'mixer',
      ),
      feedForward('mixer', hiddenSize, config.count('intermediate_size', 21504), fn, bias),
      experts(config, hiddenSize, fn, bias),
    ];
    const first = norm('norm', '$typed', 'hidden_states', hiddenSize);
    config.assumptions.push(WITHOUT_MAMBA_SSM);
    return {
      hiddenSize,
      vocabSize,
      layersPath: 'model.layers',
      embedding: embedTokens('embeddings', vocabSize, hiddenSize),
      kinds: mixers.map((mixer) => [
        { op: 'assign', input: 'hidden_states', output: 'residual' },
        { op: 'cast', like: first, input: 'hidden_states', output: '$typed' },
        first,
        mixer,
        add('residual', 'hidden_states', 'hidden_states'),
      ]),
      layers: blockKinds(config),
      final: [hiddenNorm('norm_f', hiddenSize)],
      head: {
        name: 'lm_head',
        bias: false,
        // The class ties nothing, whatever tie_word_embeddings says.
        tied: false,
        scaled: false,
        softcap: false,
        wide: true,
      },
      rotaryTables: undefined,
      masks: 1,
      bufferBytes: 0,
      alibi: false,
      peft: { ...peftDefaults(['q_proj', 'k_proj', 'v_proj', 'o_proj']), refused: MAMBA_REFUSED },
    };
  },
};
