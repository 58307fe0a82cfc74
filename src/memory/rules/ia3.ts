import type { Parameter } from '../parameters.ts';
import { cast, multiply } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/** `1 * ia3_l.flatten()`: a small tensor of its own. */
function scalingOf(ctx: Context, parameter: Parameter): Tensor {
  const { tape } = ctx;
  const leaf = parameter.tensor.node!;
  const node = tape.node(parameter.elements, parameter.dtype, () =>
    tape.give(leaf, tape.alloc(parameter.elements, parameter.dtype)),
  );
  tape.save(node, null);
  return new Tensor(tape.alloc(parameter.elements, parameter.dtype), parameter.elements, parameter.dtype, node);
}

/** PEFT's ia3.Linear for feed-forward modules: the input is scaled in the adapter's dtype. */
export function ia3Input(ctx: Context, parameter: Parameter, x: Tensor): Tensor {
  const { tape } = ctx;
  const scaling = scalingOf(ctx, parameter);
  const wide = cast(tape, x, parameter.dtype);
  const product = multiply(tape, wide, scaling);
  const out = cast(tape, product, x.dtype);
  tape.drop(product);
  tape.drop(wide);
  tape.drop(scaling);
  return out;
}

/** PEFT's ia3.Linear elsewhere: the result is scaled. Takes over `result`. */
export function ia3Output(ctx: Context, parameter: Parameter, result: Tensor): Tensor {
  const { tape } = ctx;
  const scaling = scalingOf(ctx, parameter);
  const product = multiply(tape, result, scaling);
  const out = cast(tape, product, result.dtype);
  tape.drop(product);
  tape.drop(result);
  tape.drop(scaling);
  return out;
}
