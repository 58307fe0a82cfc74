import type { Activation } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import {
  add,
  cast,
  keepInput,
  keepOutput,
  multiply,
  offset,
  power,
  scale,
  subtract,
  where,
} from '../tape/primitives.ts';
import { F32, type Tape, Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/** Runs `steps` one after the other; each ends its input, the first ends `x`, as values on Python's expression stack do. */
function chain(tape: Tape, x: Tensor, ...steps: ((x: Tensor) => Tensor)[]): Tensor {
  let current = x;
  for (const step of steps) {
    const next = step(current);
    tape.drop(current);
    current = next;
  }
  return current;
}

/** transformers' ACT2FN: PyTorch's own functions keep one tensor, the ones written out in Python many. */
export function activate(ctx: Context, fn: Activation, x: Tensor, state?: OpState): Tensor {
  const { tape } = ctx;
  switch (fn) {
    case 'silu':
    case 'gelu':
    case 'gelu_pytorch_tanh':
    case 'clamp':
      return keepInput(tape, x);
    case 'bloom_gelu':
      return bloomGelu(tape, x);
    case 'gelu_erf':
      return geluErf(tape, x);
    case 'relu':
    case 'tanh':
    case 'sigmoid':
      return keepOutput(tape, x);
    case 'relu2':
      return chain(
        tape,
        tape.hold(x),
        (y) => keepOutput(tape, y),
        (y) => autocastPower(ctx, y),
      );
    case 'gelu_new':
      return geluNew(ctx, x);
    case 'gelu_fast':
      return geluFast(tape, x);
    case 'xielu':
      return xielu(ctx, x, state!);
    case 'quick_gelu': {
      const gate = chain(
        tape,
        tape.hold(x),
        (y) => scale(tape, y),
        (y) => keepOutput(tape, y),
      );
      const out = multiply(tape, x, gate);
      tape.drop(gate);
      return out;
    }
  }
}

/** A function of its own: the tanh form, and a derivative of many products, neither recorded. */
function bloomGelu(tape: Tape, x: Tensor): Tensor {
  const temporaries = (count: number): void => {
    for (const buffer of Array.from({ length: count }, () => tape.alloc(x.elements, x.dtype))) tape.release(buffer);
  };
  const parent = x.node;
  temporaries(3);
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => {
        // tanh_out and ff have names; two products stand on the stack beside them.
        temporaries(4);
        tape.give(parent, tape.allocLike(x.elements, x.dtype, grad));
      })
    : null;
  if (node) tape.save(node, x.buffer);
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}

/** `x * 0.5 * (1 + erf(x / sqrt(2)))`: erf keeps its input (its derivative is `c * exp(-x²)`), the product both factors. */
function geluErf(tape: Tape, x: Tensor): Tensor {
  const half = scale(tape, x);
  const gate = chain(
    tape,
    tape.hold(x),
    (y) => scale(tape, y),
    (y) => keepInput(tape, y, 4),
    (y) => offset(tape, y),
  );
  return productOf(tape, half, gate);
}

/** pow is on autocast's fp32 list. */
function autocastPower(ctx: Context, x: Tensor): Tensor {
  const { tape, amp } = ctx;
  const wide = amp === undefined ? tape.hold(x) : cast(tape, x, F32);
  const out = power(tape, wide);
  tape.drop(wide);
  return out;
}

/** Product of two values of the expression stack. */
function productOf(tape: Tape, a: Tensor, b: Tensor): Tensor {
  const out = multiply(tape, a, b);
  tape.drop(a);
  tape.drop(b);
  return out;
}

/** `0.5 * x * (1 + tanh(c * (x + 0.044715 * x³)))`. */
function geluNew(ctx: Context, x: Tensor): Tensor {
  const { tape } = ctx;
  const half = scale(tape, x);
  const cubic = chain(
    tape,
    tape.hold(x),
    (y) => autocastPower(ctx, y),
    (y) => scale(tape, y),
  );
  const sum = add(tape, x, cubic);
  tape.drop(cubic);
  const gate = chain(
    tape,
    sum,
    (y) => scale(tape, y),
    (y) => keepOutput(tape, y),
    (y) => offset(tape, y),
  );
  return productOf(tape, half, gate);
}

/** `0.5 * x * (1 + tanh(x * a * (1 + 0.044715 * x * x)))`. */
function geluFast(tape: Tape, x: Tensor): Tensor {
  const half = scale(tape, x);
  const scaled = scale(tape, x);
  const inner = chain(
    tape,
    tape.hold(x),
    (y) => scale(tape, y),
    (y) => multiply(tape, y, x),
    (y) => offset(tape, y),
  );
  const product = multiply(tape, scaled, inner);
  tape.drop(scaled);
  tape.drop(inner);
  const gate = chain(
    tape,
    product,
    (y) => keepOutput(tape, y),
    (y) => offset(tape, y),
  );
  return productOf(tape, half, gate);
}

/**
 * `where(x > 0, a⁺ x² + b x, (expm1(min(x, eps)) − x) a⁻ + b x)` with two trained scalars, as transformers writes it out where
 * the xIELU kernel is not installed.
 */
function xielu({ tape }: Context, x: Tensor, state: OpState): Tensor {
  const positiveScale = keepInput(tape, state.weight!.tensor);
  const softened = keepInput(tape, state.bias!.tensor);
  const negativeScale = offset(tape, softened);
  tape.drop(softened);
  const condition = tape.bytes(x.elements);
  const linear = multiply(tape, positiveScale, x);
  const square = multiply(tape, linear, x);
  tape.drop(linear);
  const slope = scale(tape, x);
  const positive = add(tape, square, slope);
  tape.drop(square);
  tape.drop(slope);
  const bounded = keepInput(tape, x);
  const raised = keepOutput(tape, bounded);
  tape.drop(bounded);
  const difference = subtract(tape, raised, x);
  tape.drop(raised);
  const scaled = productOf(tape, difference, negativeScale);
  const second = scale(tape, x);
  const negative = add(tape, scaled, second);
  tape.drop(scaled);
  tape.drop(second);
  const out = where(tape, condition, positive, negative);
  for (const tensor of [positive, negative, positiveScale]) tape.drop(tensor);
  tape.release(condition);
  return out;
}
