import type { DenseExpertsOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { cast, keepOutput, multiply, split, sumTo } from '../tape/primitives.ts';
import { F32, Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import type { Context } from './context.ts';
import { gather } from './stacked.ts';

/**
 * Llama 4's experts: the tokens are repeated for every expert, multiplied by its score, and two batched products run on all of
 * them, whichever was chosen. Reads the logits, which stay the caller's.
 */
export function denseExperts(ctx: Context, op: DenseExpertsOp, state: OpState, x: Tensor, logits: Tensor): Tensor {
  const { tape } = ctx;
  const { experts, hiddenSize, intermediateSize } = op;
  const rows = x.elements / hiddenSize;
  const all = rows * experts;
  const [up, down] = state.stacked!.map((parameter) => parameter.tensor) as [Tensor, Tensor];

  const scores = scoresOf(ctx, logits, rows);
  const repeated = repeatTokens(ctx, x, experts);
  const weighed = multiply(tape, repeated, scores);
  tape.drop(repeated);

  const both = batched(ctx, weighed, up, all * 2 * intermediateSize);
  const size = all * intermediateSize;
  const [gate, linear] = split(tape, both, [size, size], false);
  const activated = activate(ctx, op.activation, gate!);
  const product = multiply(tape, linear!, activated);
  tape.drop(activated);
  const out = batched(ctx, product, down, all * hiddenSize);
  for (const tensor of [product, gate!, linear!, both]) tape.drop(tensor);
  const summed = sumTo(tape, out, rows * hiddenSize);
  for (const tensor of [out, weighed, scores]) tape.drop(tensor);
  return summed;
}

/** `sigmoid(scatter(-inf, chosen).float())` in the logits' dtype. */
function scoresOf(ctx: Context, logits: Tensor, rows: number): Tensor {
  const { tape } = ctx;
  const index = tape.bytes(rows * 8);
  const chosen = gather(ctx, logits, rows, index);
  const node = chosen.node
    ? tape.node(logits.elements, logits.dtype, () => tape.give(chosen.node!, tape.alloc(rows, logits.dtype)))
    : null;
  if (node) tape.save(node, index);
  const filled = new Tensor(tape.alloc(logits.elements, logits.dtype), logits.elements, logits.dtype, node);
  tape.release(index);
  tape.drop(chosen);
  const wide = cast(tape, filled, F32);
  tape.drop(filled);
  const opened = keepOutput(tape, wide);
  tape.drop(wide);
  const out = cast(tape, opened, logits.dtype);
  tape.drop(opened);
  return out;
}

/** `x.repeat(times, 1)`: a copy each; the gradient is summed back. */
function repeatTokens(ctx: Context, x: Tensor, times: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const elements = x.elements * times;
  const node = parent ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** `torch.bmm(x, weight)` of a stacked parameter; autocast casts both. */
function batched(ctx: Context, x: Tensor, weight: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const dtype = ctx.amp ?? weight.dtype;
  const [left, right] = [cast(tape, x, dtype), cast(tape, weight, dtype)];
  const node =
    left.node || right.node
      ? tape.node(elements, dtype, () => {
          const toLeft = left.node ? tape.alloc(left.elements, dtype) : null;
          const toRight = right.node ? tape.alloc(right.elements, dtype) : null;
          if (toLeft) tape.give(left.node!, toLeft);
          if (toRight) tape.give(right.node!, toRight);
        })
      : null;
  if (right.node) tape.save(node, left.buffer);
  if (left.node) tape.save(node, right.buffer);
  const out = new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
  tape.drop(left);
  tape.drop(right);
  return out;
}
