import type { Activation } from '../../model/index.ts';
import { add, cast, keepInput, keepOutput, multiply, offset, power, scale } from '../tape/primitives.ts';
import { F32, type Tape, type Tensor } from '../tape/tape.ts';
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
export function activate(ctx: Context, fn: Activation, x: Tensor): Tensor {
  const { tape } = ctx;
  switch (fn) {
    case 'silu':
    case 'gelu':
    case 'gelu_pytorch_tanh':
      return keepInput(tape, x);
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
