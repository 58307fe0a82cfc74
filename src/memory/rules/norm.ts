import { isWeightless, type NormOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import {
  cast,
  concatenate,
  keepOutput,
  layerNorm,
  mean,
  multiply,
  offset,
  power,
  split,
  subtract,
} from '../tape/primitives.ts';
import { F32, type Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';
import { fusedNorm } from './fused-kernels.ts';

/** One rule per form of norm; see NormForm for where each form is used. */
export function norm(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  if (ctx.fused.includes('norm') && !isWeightless(op.form)) return fusedNorm(ctx, op, state, x);
  switch (op.form) {
    case 'rms':
      return rms(ctx, op, state, x, false);
    case 'rms_weight_inside':
      return rms(ctx, op, state, x, true);
    case 'rms_t5':
      return rmsT5(ctx, state, op.size, x);
    case 'rms_offset':
    case 'rms_wide':
    case 'rms_bare':
      return rmsWide(ctx, op, state, x);
    case 'layer':
      return layer(ctx, op, state, x);
    case 'layer_written':
      return writtenLayer(ctx, op, state, x);
    case 'layer_offset':
      return offsetLayer(ctx, op, state, x);
    case 'layer_heads':
      return headLayers(ctx, op, state, x);
    case 'layer_fp32': {
      const { tape } = ctx;
      const wide = cast(tape, x, F32);
      const normed = layerNorm(tape, wide, null, null, op.size);
      tape.drop(wide);
      const out = cast(tape, normed, x.dtype);
      tape.drop(normed);
      return out;
    }
  }
}

/** `x * rsqrt(mean(x²) + eps)` in fp32, then cast and weight, or weight and cast. */
function rms(ctx: Context, op: NormOp, state: OpState, x: Tensor, weightInside: boolean): Tensor {
  const { tape } = ctx;
  const weight = state.weight!.tensor;
  const wide = cast(tape, x, F32);
  const squared = power(tape, wide);
  const variance = mean(tape, squared, op.size);
  tape.drop(squared);
  const shifted = offset(tape, variance);
  const inverse = keepOutput(tape, shifted, 2);
  tape.drop(shifted);
  const normed = multiply(tape, wide, inverse);
  tape.drop(wide);
  tape.drop(inverse);
  let out: Tensor;
  if (weightInside) {
    const product = multiply(tape, weight, normed);
    out = cast(tape, product, x.dtype);
    tape.drop(product);
  } else {
    const narrow = cast(tape, normed, x.dtype);
    out = multiply(tape, weight, narrow);
    tape.drop(narrow);
  }
  tape.drop(normed);
  tape.drop(variance);
  return out;
}

/** `x * rsqrt(mean(x²) + eps)` with only the variance in fp32, in the weight's dtype if that is 16 bit, times weight. */
function rmsT5(ctx: Context, state: OpState, size: number, x: Tensor): Tensor {
  const { tape } = ctx;
  const weight = state.weight!.tensor;
  const wide = cast(tape, x, F32);
  const squared = power(tape, wide);
  tape.drop(wide);
  const variance = mean(tape, squared, size);
  tape.drop(squared);
  const shifted = offset(tape, variance);
  const inverse = keepOutput(tape, shifted, 2);
  tape.drop(shifted);
  const normed = multiply(tape, x, inverse);
  tape.drop(inverse);
  const narrow = cast(tape, normed, weight.dtype === F32 ? normed.dtype : weight.dtype);
  tape.drop(normed);
  const out = multiply(tape, weight, narrow);
  tape.drop(narrow);
  tape.drop(variance);
  return out;
}

/** `x * rsqrt(…)`, times the weight (Gemma: `1 + weight`) if there is one, all in fp32, then the input's dtype. */
function rmsWide(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  const { tape } = ctx;
  const wide = cast(tape, x, F32);
  const squared = power(tape, wide);
  const variance = mean(tape, squared, op.size);
  tape.drop(squared);
  const shifted = offset(tape, variance);
  tape.drop(variance);
  const inverse = keepOutput(tape, shifted, 2);
  tape.drop(shifted);
  const normed = multiply(tape, wide, inverse);
  tape.drop(inverse);
  tape.drop(wide);
  const product = state.weight ? timesWeight(ctx, op, state.weight.tensor, normed) : normed;
  const out = cast(tape, product, x.dtype);
  tape.drop(product);
  return out;
}

/** Takes over `normed`. */
function timesWeight(ctx: Context, op: NormOp, weight: Tensor, normed: Tensor): Tensor {
  const { tape } = ctx;
  const typed = cast(tape, weight, F32);
  const factor = op.form === 'rms_offset' ? offset(tape, typed) : tape.hold(typed);
  tape.drop(typed);
  const product = multiply(tape, normed, factor);
  tape.drop(factor);
  tape.drop(normed);
  return product;
}

/** nn.LayerNorm; under autocast on CUDA it runs in fp32 and its result stays fp32. */
function layer(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  const { tape, amp } = ctx;
  if (amp === undefined) {
    return layerNorm(tape, x, state.weight!.tensor, state.bias?.tensor ?? null, op.size);
  }
  const wide = cast(tape, x, F32);
  const weight = cast(tape, state.weight!.tensor, F32);
  const bias = state.bias ? cast(tape, state.bias.tensor, F32) : null;
  const out = layerNorm(tape, wide, weight, bias, op.size);
  tape.drop(wide);
  tape.drop(weight);
  if (bias) tape.drop(bias);
  return out;
}

/** Cohere: `weight * (x - mean) * rsqrt(variance + eps)` in fp32, then the input's dtype. */
function writtenLayer(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  const { tape } = ctx;
  const wide = cast(tape, x, F32);
  const average = mean(tape, wide, op.size);
  const squared = after(ctx, subtract(tape, wide, average), (y) => power(tape, y));
  const variance = after(ctx, squared, (y) => mean(tape, y, op.size));
  const centred = subtract(tape, wide, average);
  const inverse = after(ctx, offset(tape, variance), (y) => keepOutput(tape, y, 2));
  const normed = multiply(tape, centred, inverse);
  for (const tensor of [centred, inverse, wide]) tape.drop(tensor);
  const weight = cast(tape, state.weight!.tensor, F32);
  const product = multiply(tape, weight, normed);
  tape.drop(weight);
  tape.drop(normed);
  const out = after(ctx, product, (y) => cast(tape, y, x.dtype));
  tape.drop(variance);
  tape.drop(average);
  return out;
}

/** Nemotron: the module leaves autocast, so it runs in the input's dtype. */
function offsetLayer(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  const { tape } = ctx;
  const weight = offset(tape, state.weight!.tensor);
  const out = layerNorm(tape, x, weight, state.bias?.tensor ?? null, op.size);
  tape.drop(weight);
  return out;
}

/** StableLM: split by heads, one layer norm each, concatenated. */
function headLayers(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  const { tape } = ctx;
  const [whole] = split(tape, x, [x.elements], true);
  const normed = layer(ctx, op, state, whole!);
  const out = concatenate(tape, [normed]);
  out.buffer.headMajor = true;
  tape.drop(normed);
  tape.drop(whole!);
  return out;
}

/** The next value in place of one that has no name. */
function after(ctx: Context, x: Tensor, next: (x: Tensor) => Tensor): Tensor {
  const out = next(x);
  ctx.tape.drop(x);
  return out;
}
