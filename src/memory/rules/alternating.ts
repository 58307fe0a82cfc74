import type { AlternatingOp, GaussianTopkOp } from '../../model/index.ts';
import {
  add,
  assignInto,
  batchedMatmul,
  cast,
  copy,
  keepOutput,
  mean,
  multiply,
  slice,
  subtract,
} from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';

/** transformers' Gemma3nTextAltUp; see AlternatingOp for the steps. */
export function alternating(ctx: Context, op: AlternatingOp, frame: Frame): void {
  const all = read(frame, op.all);
  const out = stepOf(ctx, op, frame, all);
  for (const name of [op.all, op.input, op.coefs]) if (name) done(ctx, frame, name);
  bind(ctx, frame, op.output, out);
}

function stepOf(ctx: Context, op: AlternatingOp, frame: Frame, all: Tensor): Tensor {
  switch (op.step) {
    case 'predict':
      return predict(ctx, all, read(frame, op.coefs!));
    case 'correct':
      return correct(ctx, all, read(frame, op.input!), read(frame, op.coefs!));
    case 'add':
      return addToOthers(ctx, op, all, read(frame, op.input!));
    case 'mean':
      return mean(ctx.tape, all, op.streams);
  }
}

/** `matmul(permuted, coefs)`, plus the input in place, made contiguous. */
function predict(ctx: Context, all: Tensor, coefs: Tensor): Tensor {
  const { tape } = ctx;
  const dtype = ctx.amp ?? all.dtype;
  const [left, right] = [cast(tape, all, dtype), cast(tape, coefs, dtype)];
  const mixed = batchedMatmul(tape, left, right, all.elements);
  mixed.buffer.headMajor = false;
  tape.drop(left);
  tape.drop(right);
  const sum = add(tape, mixed, all, true);
  tape.drop(mixed);
  const ordered = copy(tape, sum, false);
  tape.drop(sum);
  const out = cast(tape, ordered, all.dtype);
  tape.drop(ordered);
  return out;
}

function correct(ctx: Context, all: Tensor, activated: Tensor, coefs: Tensor): Tensor {
  const { tape } = ctx;
  const first = slice(tape, all, activated.elements, false);
  const change = subtract(tape, activated, first);
  tape.drop(first);
  const parent = change.node;
  const node = parent
    ? tape.node(all.elements, change.dtype, () => tape.give(parent, tape.alloc(change.elements, change.dtype)))
    : null;
  const repeated = new Tensor(tape.alloc(all.elements, change.dtype), all.elements, change.dtype, node);
  tape.drop(change);
  const weighed = multiply(tape, repeated, coefs);
  tape.drop(repeated);
  const out = add(tape, weighed, all, true);
  tape.drop(weighed);
  return out;
}

/** `all[1:] += x`: a view, a sum in place, and the view assigned to itself. */
function addToOthers(ctx: Context, op: AlternatingOp, all: Tensor, x: Tensor): Tensor {
  const { tape } = ctx;
  const others = (all.elements / op.streams) * (op.streams - 1);
  const view = slice(tape, all, others, false);
  const sum = add(tape, view, x, true);
  tape.drop(view);
  all.buffer.refs += 1;
  return assignInto(tape, all, sum);
}

/** See GaussianTopkOp. */
export function gaussianTopk(ctx: Context, op: GaussianTopkOp, x: Tensor): Tensor {
  const { tape } = ctx;
  const groups = x.elements / op.size;
  const average = mean(tape, x, op.size);
  const parent = x.node;
  const buffer = tape.alloc(groups, x.dtype);
  const node = parent
    ? tape.node(groups, x.dtype, () => {
        const centred = tape.alloc(x.elements, x.dtype);
        const scaled = tape.alloc(x.elements, x.dtype);
        tape.release(centred);
        tape.give(parent, scaled);
      })
    : null;
  if (node) {
    tape.save(node, x.buffer);
    tape.save(node, buffer);
  }
  const deviation = new Tensor(buffer, groups, x.dtype, node);
  const cutoff = add(tape, average, deviation);
  const difference = subtract(tape, x, cutoff);
  const out = keepOutput(tape, difference);
  for (const tensor of [difference, cutoff, deviation, average]) tape.drop(tensor);
  return out;
}
