import type { StackedWeight } from '../parameters.ts';
import { cast } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/** `x[index]`: the gradient is put into zeros of x's size, which makes two tensors of it for a moment. */
export function gather(ctx: Context, x: Tensor, elements: number, index: Tensor['buffer']): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent
    ? tape.node(elements, x.dtype, () => {
        const zeros = tape.alloc(x.elements, x.dtype);
        const filled = tape.alloc(x.elements, x.dtype);
        tape.release(zeros);
        tape.give(parent, filled);
      })
    : null;
  if (node) tape.save(node, index);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** The weight as the experts see it while PEFT's wrapper is active. */
export interface FoldedWeight {
  /** One more name for it; made when first asked for. */
  readonly get: () => Tensor;
  /** Leaving the wrapper. */
  readonly end: () => void;
}

/**
 * PEFT's lora.ParamWrapper: `baddbmm(W, lhs, rhs)` makes a tensor of the whole weight's size, once when the wrapper is
 * entered (thrown away) and once when the weight is used; its gradient is of that size too.
 */
export function foldFactors(ctx: Context, { weight, lora }: StackedWeight): FoldedWeight {
  const { tape } = ctx;
  if (!lora || ctx.frozen) return { get: () => tape.hold(weight.tensor), end: () => {} };
  const lhs = cast(tape, lora.b.tensor, weight.dtype);
  const rhs = cast(tape, lora.a.tensor, weight.dtype);
  tape.release(tape.alloc(weight.elements, weight.dtype));
  let folded: Tensor | undefined;
  const fold = (): Tensor => {
    const node = tape.node(weight.elements, weight.dtype, () => {
      for (const factor of [lhs, rhs]) {
        const product = tape.alloc(factor.elements, factor.dtype);
        const scaled = tape.alloc(factor.elements, factor.dtype);
        tape.release(product);
        tape.give(factor.node!, scaled);
      }
    });
    tape.save(node, lhs.buffer);
    tape.save(node, rhs.buffer);
    return new Tensor(tape.alloc(weight.elements, weight.dtype), weight.elements, weight.dtype, node);
  };
  return {
    get: () => {
      folded ??= fold();
      return tape.hold(folded);
    },
    end: () => {
      if (folded) tape.drop(folded);
      tape.drop(lhs);
      tape.drop(rhs);
    },
  };
}
