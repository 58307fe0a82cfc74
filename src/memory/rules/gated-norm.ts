import type { GatedNormOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { cast, keepInput, keepOutput, mean, multiply, offset, power } from '../tape/primitives.ts';
import { F32, type Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/**
 * RMS norm with a gate. `after`: normed, weighted, times `silu(gate)` in fp32, the input's dtype (Qwen3-Next). `before`: times
 * `silu(gate)` in fp32, normed, cast, weighted (Mamba 2).
 */
export function gatedNorm(ctx: Context, op: GatedNormOp, state: OpState, x: Tensor, gate: Tensor): Tensor {
  const { tape } = ctx;
  const weight = state.weight!.tensor;
  let wide = cast(tape, x, F32);
  if (op.gated === 'before') {
    const opened = openGate(ctx, gate);
    const product = multiply(tape, wide, opened);
    tape.drop(opened);
    tape.drop(wide);
    wide = product;
  }
  const squared = power(tape, wide);
  const variance = mean(tape, squared, op.size);
  tape.drop(squared);
  const shifted = offset(tape, variance);
  const inverse = keepOutput(tape, shifted, 2);
  tape.drop(shifted);
  const normed = multiply(tape, wide, inverse);
  tape.drop(wide);
  tape.drop(inverse);
  const narrow = cast(tape, normed, x.dtype);
  const weighted = multiply(tape, weight, narrow);
  tape.drop(narrow);
  tape.drop(normed);
  if (op.gated === 'before') {
    tape.drop(variance);
    return weighted;
  }
  const opened = openGate(ctx, gate);
  const product = multiply(tape, weighted, opened);
  tape.drop(opened);
  tape.drop(weighted);
  const out = cast(tape, product, x.dtype);
  tape.drop(product);
  tape.drop(variance);
  return out;
}

/** `silu(gate.to(fp32))`. */
function openGate(ctx: Context, gate: Tensor): Tensor {
  const { tape } = ctx;
  const wide = cast(tape, gate, F32);
  const opened = keepInput(tape, wide);
  tape.drop(wide);
  return opened;
}
