import { add, cast, concatenate, constant, multiply, slice, split } from '../tape/primitives.ts';
import { F32, type Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/** `cat([a * cos - b * sin, b * cos + a * sin])` with a and b the two halves, or the even and the odd features. */
export function turnHalves(ctx: Context, x: Tensor, form: 'chunks' | 'strided'): Tensor {
  const { tape, constants, hiddenDtype } = ctx;
  const half = x.elements / 2;
  const [a, b] =
    form === 'chunks' ? split(tape, x, [half, half], true) : [slice(tape, x, half, true), slice(tape, x, half, true)];
  const table = constant(constants.rotary!, constants.rotaryElements / 2, hiddenDtype);
  const mixed = (first: Tensor, second: Tensor): Tensor => {
    const [left, right] = [multiply(tape, first, table), multiply(tape, second, table)];
    const sum = add(tape, left, right);
    tape.drop(left);
    tape.drop(right);
    return sum;
  };
  const parts = [mixed(a!, b!), mixed(b!, a!)];
  const out = concatenate(tape, parts);
  out.buffer.headMajor = x.buffer.headMajor;
  for (const part of [...parts, a!, b!]) tape.drop(part);
  return out;
}

/** `view_as_real(view_as_complex(x.float()) * freqs).type_as(x)`. */
export function turnComplex(ctx: Context, x: Tensor): Tensor {
  const { tape, constants } = ctx;
  const wide = cast(tape, x, F32);
  const turned = multiply(tape, wide, constant(constants.rotary!, constants.rotaryElements, F32));
  tape.drop(wide);
  const out = cast(tape, turned, x.dtype);
  tape.drop(turned);
  return out;
}
