import type { LinearOp, NormOp } from './layers.ts';

/** One value an element: activations, sums and products, dropout, casts. See `op.ts` for how ops name their values. */

/** Names of transformers' ACT2FN that the memory room has a rule for. */
export const ACTIVATIONS = [
  'silu',
  'gelu',
  'gelu_pytorch_tanh',
  'gelu_new',
  'gelu_fast',
  'quick_gelu',
  'relu',
  'relu2',
  'tanh',
  'sigmoid',
  'xielu',
] as const;
export type Activation = (typeof ACTIVATIONS)[number] | 'bloom_gelu' | 'gelu_erf' | 'clamp';

/** `xielu` has two scalar parameters (Apertus). `bloom_gelu` keeps its input and writes its derivative out; `gelu_erf`
 * is written out with erf (ESM); `clamp` is not in place. */
export interface ActivationOp {
  readonly op: 'activation';
  readonly fn: Activation;
  readonly input: string;
  readonly output: string;
}

/** `add_in_place`: `a += b`. */
export interface BinaryOp {
  readonly op: 'add' | 'add_in_place' | 'multiply';
  readonly a: string;
  readonly b: string;
  readonly output: string;
}

/** `relu(x - (mean(x) + std(x) * number))` over the features of a token (Gemma 3n). */
export interface GaussianTopkOp {
  readonly op: 'gaussian_topk';
  readonly size: number;
  readonly input: string;
  readonly output: string;
}

/** Times or divided by a number. */
export interface ScaleOp {
  readonly op: 'scale';
  /** `x *= number`. */
  readonly inPlace?: boolean;
  readonly input: string;
  readonly output: string;
}

/** `tanh(x / cap) * cap`. */
export interface SoftcapOp {
  readonly op: 'softcap';
  readonly input: string;
  readonly output: string;
}

export interface DropoutOp {
  readonly op: 'dropout';
  readonly p: number;
  readonly input: string;
  readonly output: string;
}

/** `clamp_` in place. */
export interface ClampOp {
  readonly op: 'clamp';
  readonly input: string;
}

/** `x.to(weight.dtype)` of a linear layer's weight. */
export interface CastOp {
  readonly op: 'cast';
  readonly input: string;
  readonly output: string;
  /** A layer's weight, a value by its name, or fp32. */
  readonly like: LinearOp | NormOp | { readonly value: string } | 'fp32';
}
