import { type IdleModules, joinPath, type LinearOp, type NormForm, type Op } from '../../ops.ts';
import { linear, norm } from '../parts.ts';

/** Modules of vision towers. A step on text alone only holds their weights, so no values are named. */

export const dense = (name: string, from: number, to: number, bias = true): LinearOp =>
  linear(name, 'x', 'x', from, to, bias);

export const parameter = (name: string, elements: number): Op => ({ op: 'parameter', name, elements });

export const layerNorm = (name: string, size: number): Op => norm(name, 'x', 'x', size, 'layer');
export const rmsNorm = (name: string, size: number): Op => norm(name, 'x', 'x', size, 'rms');
export const normOf = (form: NormForm, name: string, size: number): Op => norm(name, 'x', 'x', size, form);

/** A convolution over patches: outside PEFT's and bitsandbytes' reach. */
export const patches = (name: string, size: number, pixels: number, bias: boolean): readonly Op[] => [
  parameter(`${name}.weight`, size * pixels),
  ...(bias ? [parameter(`${name}.bias`, size)] : []),
];

export const once = (path: string, ops: readonly Op[]): IdleModules => ({ path, ops, count: 1 });
export const layers = (path: string, count: number, ops: readonly Op[]): IdleModules => ({
  path: `${path}.0`,
  ops,
  count,
});

/** Four projections of attention. */
export const projections = (
  path: string,
  size: number,
  output: string,
  bias: { readonly qkv: boolean; readonly output: boolean },
  inner = size,
): readonly Op[] => [
  dense(`${path}.k_proj`, size, inner, bias.qkv),
  dense(`${path}.v_proj`, size, inner, bias.qkv),
  dense(`${path}.q_proj`, size, inner, bias.qkv),
  dense(`${path}.${output}`, inner, size, bias.output),
];

export const twoLayers = (
  path: string,
  names: readonly [string, string],
  size: number,
  inner: number,
  output = size,
): readonly Op[] => [dense(joinPath(path, names[0]), size, inner), dense(joinPath(path, names[1]), inner, output)];
