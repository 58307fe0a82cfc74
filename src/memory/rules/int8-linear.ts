import type { Parameter, QuantisedWeight } from '../parameters.ts';
import { add, cast, giveAs } from '../tape/primitives.ts';
import { F16, Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/**
 * bitsandbytes' MatMul8bitLt without outliers: the input in fp16 and then in int8, an int32 product, its fp16 form. The input
 * is held by the function's own context, which checkpointing's hooks do not see and the engine does not clear: it lasts to
 * the end of the backward pass. The backward pass dequantises the weight into the input's dtype.
 * Source: bitsandbytes 0.50 autograd/_functions.py, backends/cuda/ops.py.
 */
export function int8Linear(
  ctx: Context,
  weight: QuantisedWeight,
  bias: Parameter | undefined,
  x: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): Tensor {
  const { tape } = ctx;
  const { dtype } = x;
  const rows = x.elements / shape.inFeatures;
  const elements = rows * shape.outFeatures;
  const parent = x.node;
  const node = parent
    ? tape.node(elements, dtype, () => {
        const dense = tape.alloc(weight.elements, dtype);
        const toInput = tape.alloc(x.elements, dtype);
        tape.release(dense);
        giveAs(tape, x, toInput, x.elements, dtype);
      })
    : null;
  if (node) tape.holdForContext(x.buffer);
  const half = dtype === F16 ? undefined : tape.alloc(x.elements, F16);
  const codes = tape.bytes(x.elements);
  const statistics = tape.bytes(rows * 4);
  if (half) tape.release(half);
  const product = tape.bytes(elements * 4);
  const narrow = tape.alloc(elements, F16);
  tape.release(product);
  const buffer = dtype === F16 ? narrow : tape.alloc(elements, dtype);
  if (buffer !== narrow) tape.release(narrow);
  tape.release(codes);
  tape.release(statistics);
  const out = new Tensor(buffer, elements, dtype, node);
  if (!bias) return out;
  const addend = cast(tape, bias.tensor, dtype);
  const sum = add(tape, out, addend);
  tape.drop(out);
  tape.drop(addend);
  return sum;
}
