import type { ConfigReader } from '../config-reader.ts';
import type { Activation, ModelDescription, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { activation, add, call, embedTokens, linear, multiply, noPeftDefaults, norm, split } from './parts.ts';

export const WITHOUT_MAMBA_SSM =
  'the selective scan runs in plain PyTorch, as without the mamba_ssm and causal_conv1d packages; with them it needs far less';

/** Layers that PEFT refuses in models with these mixers: the fused kernels take their weights without them. */
export const MAMBA_REFUSED: readonly string[] = ['out_proj', 'conv1d'];

export interface Mamba2Shape {
  readonly hiddenSize: number;
  readonly heads: number;
  readonly headDim: number;
  readonly groups: number;
  readonly stateSize: number;
  readonly kernel: number;
  readonly chunk: number;
  readonly bias: boolean;
  readonly convBias: boolean;
  readonly activation: Activation;
  /** The gate alone, without a norm (Falcon H1). */
  readonly bareGate?: boolean;
  /** What enters and what is projected is multiplied by numbers (Falcon H1). */
  readonly scaled?: boolean;
}

/** The mixer's keys as Bamba and Granite 4 write them, with their defaults. */
export function readMamba2Keys(
  config: ConfigReader,
  { hiddenSize, activation }: Pick<Mamba2Shape, 'hiddenSize' | 'activation'>,
): Mamba2Shape {
  const heads = config.count('mamba_n_heads', 128);
  const inner = config.count('mamba_expand', 2) * hiddenSize;
  config.divisible(inner, 'mamba_expand * hidden_size', heads, 'mamba_n_heads');
  return {
    hiddenSize,
    heads,
    headDim: inner / heads,
    groups: config.count('mamba_n_groups', 1),
    stateSize: config.count('mamba_d_state', 256),
    kernel: config.count('mamba_d_conv', 4),
    chunk: config.count('mamba_chunk_size', 256),
    bias: config.flag('mamba_proj_bias', false),
    convBias: config.flag('mamba_conv_bias', true),
    activation,
  };
}

/** Mamba 2's mixer: one projection, a short convolution, the scan, a norm with the gate before it, a projection back. */
export function mamba2Mixer(shape: Mamba2Shape, name: string): Op {
  const inner = shape.heads * shape.headDim;
  const states = shape.groups * shape.stateSize;
  const features = 2 * inner + 2 * states + shape.heads;
  const project = linear('in_proj', 'hidden_states', 'projected', shape.hiddenSize, features, shape.bias);
  const scaled = (value: string): readonly Op[] => (shape.scaled ? [{ op: 'scale', input: value, output: value }] : []);
  const gated: readonly Op[] = shape.bareGate
    ? [activation('silu', 'gate', '$opened'), multiply('scan_output', '$opened', 'scan_output')]
    : [
        {
          op: 'gated_norm',
          name: 'norm',
          size: inner,
          gated: 'before',
          input: 'scan_output',
          gate: 'gate',
          output: 'scan_output',
        },
      ];
  return call(name, { hidden_states: 'hidden_states' }, { output: 'hidden_states' }, [
    ...scaled('hidden_states'),
    project,
    ...scaled('projected'),
    split('projected', [
      ['gate', inner],
      ['mixed', inner + 2 * states],
      ['dt', shape.heads],
    ]),
    {
      op: 'convolution',
      name: 'conv1d',
      channels: inner + 2 * states,
      kernel: shape.kernel,
      bias: shape.convBias,
      activation: shape.activation,
      castsInput: true,
      input: 'mixed',
      output: 'mixed',
    },
    split('mixed', [
      ['x', inner],
      ['b', states],
      ['c', states],
    ]),
    {
      op: 'chunk_scan',
      heads: shape.heads,
      headDim: shape.headDim,
      groups: shape.groups,
      stateSize: shape.stateSize,
      chunk: shape.chunk,
      x: 'x',
      b: 'b',
      c: 'c',
      dt: 'dt',
      output: 'scan_output',
    },
    ...gated,
    { op: 'cast', like: { value: 'hidden_states' }, input: 'scan_output', output: '$narrow' },
    linear('out_proj', '$narrow', 'output', inner, shape.hiddenSize, shape.bias),
  ]);
}

/** Layers that are a norm and a mixer each, under Mamba's names. */
export function mambaStack(
  config: ConfigReader,
  parts: {
    readonly hiddenSize: number;
    readonly vocab: number;
    readonly layers: number;
    readonly tied: boolean;
    readonly mixer: Op;
  },
): ModelDescription {
  const { hiddenSize } = parts;
  const vocabSize = config.count('vocab_size', parts.vocab);
  const layers = config.count('num_hidden_layers', parts.layers);
  const first = norm('norm', '$typed', 'hidden_states', hiddenSize);
  const last = norm('norm_f', 'hidden_states', '$normed', hiddenSize);
  config.assumptions.push(WITHOUT_MAMBA_SSM);
  return {
    hiddenSize,
    vocabSize,
    layersPath: 'backbone.layers',
    embedding: embedTokens('embeddings', vocabSize, hiddenSize),
    kinds: [
      [
        { op: 'assign', input: 'hidden_states', output: 'residual' },
        { op: 'cast', like: first, input: 'hidden_states', output: '$typed' },
        first,
        ...(config.flag('residual_in_fp32', true)
          ? [{ op: 'cast', like: 'fp32', input: 'residual', output: 'residual' } satisfies Op]
          : []),
        parts.mixer,
        add('residual', 'hidden_states', 'hidden_states'),
      ],
    ],
    layers: new Array<number>(layers).fill(0),
    final: [last, { op: 'cast', like: last, input: '$normed', output: 'hidden_states' }],
    head: {
      name: 'lm_head',
      bias: false,
      tied: config.flag('tie_word_embeddings', parts.tied),
      scaled: false,
      softcap: false,
      wide: true,
    },
    rotaryTables: undefined,
    masks: 0,
    kernels: [],
    bufferBytes: 0,
    alibi: false,
    peft: { ...noPeftDefaults, refused: MAMBA_REFUSED },
  };
}

export const mamba2: Architecture = {
  modelTypes: ['mamba2'],
  source: 'transformers 5.17 models/mamba2/modeling_mamba2.py',
  describe: (config) => {
    const hiddenSize = config.count('hidden_size', 4096);
    return mambaStack(config, {
      hiddenSize,
      vocab: 32768,
      layers: 64,
      tied: false,
      mixer: mamba2Mixer(
        {
          hiddenSize,
          heads: config.count('num_heads', 128),
          headDim: config.count('head_dim', 64),
          groups: config.count('n_groups', 8),
          stateSize: config.count('state_size', 128),
          kernel: config.count('conv_kernel', 4),
          chunk: config.count('chunk_size', 256),
          bias: config.flag('use_bias', false),
          convBias: config.flag('use_conv_bias', true),
          activation: config.activation('hidden_act', 'silu'),
        },
        'mixer',
      ),
    });
  },
};
