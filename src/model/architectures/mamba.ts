import type { Activation, LinearOp, NormForm, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { mambaStack } from './mamba2.ts';
import { call, linear, norm, split } from './parts.ts';

export interface MambaShape {
  readonly hiddenSize: number;
  readonly inner: number;
  readonly stateSize: number;
  readonly rank: number;
  readonly kernel: number;
  readonly bias: boolean;
  readonly convBias: boolean;
  readonly activation: Activation;
  /** Norms on step sizes, B and C (Jamba; without weights in Falcon Mamba). */
  readonly norms?: NormForm;
}

/** Mamba's mixer: one projection, a short convolution, step sizes and matrices from its result, the scan, a projection back. */
export function mambaMixer(shape: MambaShape, name: string): Op {
  const { inner, stateSize, rank } = shape;
  const step: LinearOp = { ...linear('dt_proj', 'time_step', 'time_step', rank, inner, true), bypassed: true };
  const norms = (['dt', 'b', 'c'] as const).map((letter) => {
    const value = letter === 'dt' ? 'time_step' : letter;
    return norm(`${letter}_layernorm`, value, value, letter === 'dt' ? rank : stateSize, shape.norms);
  });
  return call(name, { hidden_states: 'hidden_states' }, { output: 'hidden_states' }, [
    linear('in_proj', 'hidden_states', 'projected_states', shape.hiddenSize, 2 * inner, shape.bias),
    split('projected_states', [
      ['x', inner],
      ['gate', inner],
    ]),
    {
      op: 'convolution',
      name: 'conv1d',
      channels: inner,
      kernel: shape.kernel,
      bias: shape.convBias,
      activation: shape.activation,
      castsInput: true,
      input: 'x',
      output: 'x',
    },
    linear('x_proj', 'x', '$selected', inner, rank + 2 * stateSize),
    split('$selected', [
      ['time_step', rank],
      ['b', stateSize],
      ['c', stateSize],
    ]),
    ...(shape.norms ? norms : []),
    step,
    {
      op: 'selective_scan',
      channels: inner,
      stateSize,
      step,
      x: 'x',
      dt: 'time_step',
      b: 'b',
      c: 'c',
      gate: 'gate',
      output: 'scan_output',
    },
    { op: 'cast', like: { value: 'hidden_states' }, input: 'scan_output', output: '$narrow' },
    linear('out_proj', '$narrow', 'output', inner, shape.hiddenSize, shape.bias),
  ]);
}

export const mamba: Architecture = {
  modelTypes: ['mamba', 'falcon_mamba'],
  source: 'transformers 5.17 models/mamba/modeling_mamba.py, models/falcon_mamba/modeling_falcon_mamba.py',
  describe: (config, modelType) => {
    const hiddenSize = config.count('hidden_size', 768);
    const rank = config.raw('time_step_rank');
    return mambaStack(config, {
      hiddenSize,
      vocab: 50280,
      layers: 32,
      tied: true,
      mixer: mambaMixer(
        {
          hiddenSize,
          inner: config.count('expand', 2) * hiddenSize,
          stateSize: config.count('state_size', 16),
          rank: rank === undefined || rank === 'auto' ? Math.ceil(hiddenSize / 16) : config.count('time_step_rank', 1),
          kernel: config.count('conv_kernel', 4),
          bias: config.flag('use_bias', false),
          convBias: config.flag('use_conv_bias', true),
          activation: config.activation('hidden_act', 'silu'),
          ...(modelType === 'falcon_mamba' ? { norms: 'rms_bare' } : {}),
        },
        'mixer',
      ),
    });
  },
};
