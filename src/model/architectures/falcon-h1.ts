import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { scaledTokens } from './granite.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { MAMBA_REFUSED, mamba2Mixer, WITHOUT_MAMBA_SSM } from './mamba2.ts';
import { activation, add, call, hiddenNorm, linear, multiply, noPeftDefaults, selfAttention } from './parts.ts';

const scaled = (value: string): Op => ({ op: 'scale', input: value, output: value });

/** Attention whose keys are multiplied by a number. */
function attend(keys: LlamaLike, bias: boolean): Op {
  const block = selfAttention(keys.shape, { qkvBias: bias, outputBias: bias });
  return {
    ...block,
    arguments: { attention_input: 'hidden_states' },
    results: { attn_output: 'attention_hidden_states', attn_weights: '_' },
    ops: block.ops.flatMap((op) =>
      op.op === 'heads' && op.output === 'key_states' ? [op, scaled('key_states')] : [op],
    ),
  };
}

/** `down(up(x) * act(gate(x) * a)) * b`. */
const feedForward = ({ hiddenSize, intermediateSize, activation: fn }: LlamaLike, bias: boolean): Op =>
  call('feed_forward', { hidden_states: 'x' }, { y: 'hidden_states' }, [
    linear('up_proj', 'x', '$up', hiddenSize, intermediateSize, bias),
    linear('gate_proj', 'x', '$gate', hiddenSize, intermediateSize, bias),
    scaled('$gate'),
    activation(fn, '$gate', '$activated'),
    multiply('$up', '$activated', 'y'),
    linear('down_proj', 'y', '$down', intermediateSize, hiddenSize, bias),
    { op: 'scale', input: '$down', output: 'y' },
  ]);

/** Mamba 2 and attention beside each other on the same input. */
export const falconH1: Architecture = {
  modelTypes: ['falcon_h1'],
  source: 'transformers 5.17 models/falcon_h1/modeling_falcon_h1.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 128000,
    });
    const { hiddenSize } = keys;
    const heads = config.count('mamba_n_heads', 128);
    const inner =
      config.raw('mamba_d_ssm') === null
        ? config.count('mamba_expand', 2) * hiddenSize
        : config.count('mamba_d_ssm', 1024);
    config.divisible(inner, 'mamba_d_ssm', heads, 'mamba_n_heads');
    const bias = config.flag('mamba_proj_bias', false);
    if (config.flag('projectors_bias', false) !== bias) {
      config.refuse('a Falcon H1 with projectors_bias unlike mamba_proj_bias is not described');
    }
    const shape = {
      hiddenSize,
      heads,
      headDim: inner / heads,
      groups: config.count('mamba_n_groups', 1),
      stateSize: config.count('mamba_d_state', 256),
      kernel: config.count('mamba_d_conv', 4),
      chunk: config.count('mamba_chunk_size', 256),
      bias,
      convBias: config.flag('mamba_conv_bias', true),
      activation: keys.activation,
      bareGate: !config.flag('mamba_rms_norm', false),
      scaled: true,
    };
    const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
    const mixer = mamba2Mixer(shape, 'mamba') as Extract<Op, { op: 'call' }>;
    const line = llamaLine(keys, {
      kinds: [
        [
          hold,
          hiddenNorm('input_layernorm', hiddenSize),
          { ...mixer, results: { output: 'mamba_hidden_states' } },
          scaled('mamba_hidden_states'),
          { op: 'scale', input: 'hidden_states', output: 'attention_input' },
          attend(keys, config.flag('attention_bias', false)),
          { op: 'drop', names: ['attention_input'] },
          scaled('attention_hidden_states'),
          add('mamba_hidden_states', 'attention_hidden_states', 'hidden_states'),
          add('residual', 'hidden_states', 'hidden_states'),
          hold,
          hiddenNorm('pre_ff_layernorm', hiddenSize),
          feedForward(keys, config.flag('mlp_bias', false)),
          add('residual', 'hidden_states', 'hidden_states'),
        ],
      ],
      tied: config.flag('tie_word_embeddings', false),
      scaledLogits: true,
      embeddingOps: scaledTokens(keys),
      // A vector of multipliers a layer.
      extraBufferBytes: keys.layers * (2 * inner + 2 * shape.groups * shape.stateSize + heads) * 2,
      peft: { ...noPeftDefaults, refused: MAMBA_REFUSED },
    });
    config.assumptions.push(WITHOUT_MAMBA_SSM);
    return { ...line, final: [hiddenNorm('final_layernorm', hiddenSize)] };
  },
};
