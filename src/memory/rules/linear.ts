import type { LinearOp } from '../../model/index.ts';
import type { LinearState } from '../parameters.ts';
import { add, cast, matmul } from '../tape/primitives.ts';
import type { Tensor } from '../tape/tape.ts';
import { type Context, weightFor } from './context.ts';
import { dora } from './dora.ts';
import { ia3Input, ia3Output } from './ia3.ts';
import { lora } from './lora.ts';
import { quantisedLinear } from './quantised-linear.ts';

type Shape = Pick<LinearOp, 'inFeatures' | 'outFeatures' | 'form' | 'bypassed'>;

/** A linear layer with whatever stands in its place: quantised base, adapter, or the plain layer. */
export function linear(ctx: Context, state: LinearState, x: Tensor, shape: Shape): Tensor {
  const { adapter } = state;
  if (shape.bypassed && state.weight) return plainLinear(ctx, { weight: state.weight, bias: undefined }, x, shape);
  if (!adapter || ctx.frozen) return base(ctx, state, x, shape);
  if (adapter.kind === 'ia3') {
    if (adapter.feedforward) {
      const scaled = ia3Input(ctx, adapter.scaling, x);
      const result = base(ctx, state, scaled, shape);
      ctx.tape.drop(scaled);
      return result;
    }
    return ia3Output(ctx, adapter.scaling, base(ctx, state, x, shape));
  }
  const result = base(ctx, state, x, shape);
  return adapter.kind === 'dora' ? dora(ctx, adapter, state, x, result, shape) : lora(ctx, adapter, x, result, shape);
}

function base(ctx: Context, state: LinearState, x: Tensor, shape: Shape): Tensor {
  return state.quantised
    ? quantisedLinear(ctx, state.quantised, state.bias, x, shape)
    : plainLinear(ctx, state, x, shape);
}

/** nn.Linear and Conv1D: one (add)mm of rows × features; `matmul` adds the bias by itself. */
export function plainLinear(
  ctx: Context,
  state: { readonly weight: LinearState['weight']; readonly bias: LinearState['bias'] },
  x: Tensor,
  shape: Shape,
): Tensor {
  const { tape, amp } = ctx;
  // `weight.T` is a view, and autocast caches only whole parameters.
  const weight =
    shape.form === 'matmul'
      ? cast(tape, state.weight!.tensor, amp ?? state.weight!.dtype)
      : weightFor(ctx, state.weight!);
  const input = cast(tape, x, amp ?? weight.dtype);
  const rows = input.elements / shape.inFeatures;
  if (state.bias && shape.form === 'matmul') {
    const product = matmul(tape, input, weight, null, rows, shape.outFeatures);
    tape.drop(input);
    tape.drop(weight);
    const out = add(tape, product, state.bias.tensor);
    tape.drop(product);
    return out;
  }
  const bias = state.bias ? weightFor(ctx, state.bias) : null;
  const out = matmul(tape, input, weight, bias, rows, shape.outFeatures);
  tape.drop(input);
  tape.drop(weight);
  if (bias) tape.drop(bias);
  return out;
}
