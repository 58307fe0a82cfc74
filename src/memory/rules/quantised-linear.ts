import type { Parameter, QuantisedWeight } from '../parameters.ts';
import { add, cast, giveAs } from '../tape/primitives.ts';
import { type Buffer, F16, Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';
import { int8Linear } from './int8-linear.ts';

/**
 * bitsandbytes' MatMul4Bit (autograd/_functions.py): the weight is dequantised into a temporary in the forward and again
 * in the backward pass; the weight is not kept, and since 0.43.1 neither is the input. The bias is added by itself.
 */
export function quantisedLinear(
  ctx: Context,
  weight: QuantisedWeight,
  bias: Parameter | undefined,
  x: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): Tensor {
  if (weight.products === 'int8') return int8Linear(ctx, weight, bias, x, shape);
  const { tape } = ctx;
  const dtype = weight.computeDtype;
  const elements = (x.elements / shape.inFeatures) * shape.outFeatures;
  const parent = x.node;
  const node = parent
    ? tape.node(elements, dtype, () => {
        const dense = dequantised(ctx, weight);
        const toInput = tape.alloc(x.elements, dtype);
        tape.product();
        tape.release(dense);
        giveAs(tape, x, toInput, x.elements, dtype);
      })
    : null;
  if (weight.keepsInput) tape.save(node, x.buffer);
  const dense = dequantised(ctx, weight);
  const wide = x.dtype === dtype ? null : tape.alloc(x.elements, dtype);
  const out = new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
  tape.product();
  if (wide) tape.release(wide);
  tape.release(dense);
  if (!bias) return out;
  const addend = cast(tape, bias.tensor, dtype);
  const sum = add(tape, out, addend);
  tape.drop(out);
  tape.drop(addend);
  return sum;
}

function dequantised({ tape }: Context, { elements, computeDtype, throughHalf }: QuantisedWeight): Buffer {
  const half = throughHalf ? tape.alloc(elements, F16) : null;
  const dense = tape.alloc(elements, computeDtype);
  if (half) tape.release(half);
  return dense;
}
