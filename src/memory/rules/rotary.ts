import type { RotaryOp } from '../../model/index.ts';
import { add, concatenate, constant, multiply, scale, slice } from '../tape/primitives.ts';
import type { Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';
import { turnInPlace } from './fused-kernels.ts';

/** apply_rotary_pos_emb: `q * cos + rotate_half(q) * sin` for q, then k; features beyond rotaryDim are joined unchanged. */
export function rotary(ctx: Context, op: RotaryOp, frame: Frame): void {
  const q = turn(ctx, read(frame, op.q), op);
  const k = turn(ctx, read(frame, op.k), op);
  bind(ctx, frame, op.q, q);
  bind(ctx, frame, op.k, k);
}

function turn(ctx: Context, x: Tensor, op: RotaryOp): Tensor {
  const { tape } = ctx;
  if (ctx.fused.includes('rotary') && op.rotaryDim === op.headDim) return turnInPlace(tape, x);
  if (!op.join) return rotate(ctx, x);
  const turned = (x.elements / op.headDim) * op.rotaryDim;
  const part = turned === x.elements ? tape.hold(x) : slice(tape, x, turned, true);
  const rest = slice(tape, x, x.elements - turned, true);
  const rotated = rotate(ctx, part);
  const out = concatenate(tape, [rotated, rest]);
  tape.drop(rotated);
  tape.drop(part);
  tape.drop(rest);
  return out;
}

function rotate(ctx: Context, x: Tensor): Tensor {
  const { tape, constants, hiddenDtype } = ctx;
  const table = constant(constants.rotary!, constants.rotaryElements, hiddenDtype);
  const straight = multiply(tape, x, table);
  const half = x.elements / 2;
  const first = slice(tape, x, half, true);
  const second = slice(tape, x, half, true);
  const negated = scale(tape, second);
  const joined = concatenate(tape, [negated, first]);
  tape.drop(negated);
  tape.drop(first);
  tape.drop(second);
  const across = multiply(tape, joined, table);
  tape.drop(joined);
  const out = add(tape, straight, across);
  tape.drop(straight);
  tape.drop(across);
  return out;
}
