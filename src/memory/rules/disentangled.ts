import type { DisentangledOp, LinearOp } from '../../model/index.ts';
import {
  add,
  batchedMatmul,
  cast,
  copy,
  dropout,
  giveAs,
  keepOutput,
  offset,
  repeatRows,
  scale,
  viewHeads,
} from '../tape/primitives.ts';
import { F32, type Node, Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';
import { linear } from './linear.ts';

/** Bytes of an index. */
const LONG = 8;

/**
 * transformers' DisentangledSelfAttention (models/deberta_v2): scores are real, several times, and every name lasts until
 * the function ends.
 */
export function disentangled(ctx: Context, op: DisentangledOp, frame: Frame): void {
  const { tape, batch, tokens, amp } = ctx;
  const x = read(frame, op.input);
  const query = transposed(ctx, op.query, x);
  const key = transposed(ctx, op.key, x);
  const value = transposed(ctx, op.value, x);
  const scoreElements = batch * op.heads * tokens * tokens;
  const scaledKey = scale(tape, key);
  let scores = product(ctx, query, scaledKey, scoreElements);
  tape.drop(scaledKey);
  const names = [query, key, value];
  if (op.positions > 0) {
    const positions = dropout(tape, read(frame, op.positionsInput), op.positionDropout);
    const bias = relative(ctx, op, positions, query, key, scoreElements);
    names.push(positions);
    if (bias) {
      scores = swap(ctx, scores, (old) => add(tape, old, bias));
      names.push(bias);
    }
  }
  scores = swap(ctx, scores, (old) => maskedFill(ctx, old));
  const wide = cast(tape, scores, amp === undefined ? scores.dtype : F32);
  let weights = keepOutput(tape, wide);
  tape.drop(wide);
  weights = swap(ctx, weights, (old) => dropout(tape, old, op.dropout));
  const mixed = product(ctx, weights, value, batch * op.heads * tokens * op.headDim);
  const out = copy(tape, mixed, false);
  for (const tensor of [mixed, weights, scores, ...names]) tape.drop(tensor);
  bind(ctx, frame, op.output, out);
}

/** A projection, its heads in front, as a copy. */
function transposed(ctx: Context, op: LinearOp, x: Tensor): Tensor {
  const { tape } = ctx;
  const flat = linear(ctx, ctx.states.get(op)!.linear!, x, op);
  const view = viewHeads(tape, flat);
  const out = copy(tape, view, true);
  tape.drop(view);
  tape.drop(flat);
  return out;
}

/** Scores with relative positions; undefined where the config names neither way. */
function relative(
  ctx: Context,
  op: DisentangledOp,
  positions: Tensor,
  query: Tensor,
  key: Tensor,
  elements: number,
): Tensor | undefined {
  const { tape } = ctx;
  const forEveryRow = (projection: LinearOp): Tensor => {
    const one = transposed(ctx, projection, positions);
    const all = repeatRows(tape, one, ctx.batch);
    tape.drop(one);
    return all;
  };
  const projected: Tensor[] = [];
  const project = (projection: LinearOp): Tensor => {
    const tensor = forEveryRow(projection);
    projected.push(tensor);
    return tensor;
  };
  // With shared projections both are made, whatever is used.
  const sharedBoth = !op.positionKey && !op.positionQuery;
  const forQuery = sharedBoth ? project(op.query) : undefined;
  const forKey = op.contentToPosition || sharedBoth ? project(op.positionKey ?? op.key) : undefined;
  const own = op.positionToContent ? (forQuery ?? project(op.positionQuery ?? op.query)) : undefined;
  let score: Tensor | undefined;
  const parts: Tensor[] = [];
  const addPart = (content: Tensor, table: Tensor): void => {
    const wide = product(ctx, content, table, (content.elements / op.headDim) * op.positions);
    const part = gather(ctx, wide, elements);
    tape.drop(wide);
    parts.push(part);
    const scaled = scale(tape, part);
    // `0 + x` is a new tensor, the second sum is in place.
    const sum = score ? add(tape, score, scaled, true) : offset(tape, scaled);
    tape.drop(scaled);
    if (score) tape.drop(score);
    score = sum;
  };
  if (op.contentToPosition) addPart(query, forKey!);
  if (op.positionToContent) addPart(key, own!);
  for (const tensor of [...parts, ...projected]) tape.drop(tensor);
  return score;
}

/** `torch.gather` along the last dimension with one index for all rows and heads; its gradient, made from the kept input, is scattered into zeros. */
function gather(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape, tokens } = ctx;
  const shifted = tape.bytes(tokens * tokens * LONG);
  const index = tape.bytes(tokens * tokens * LONG);
  tape.release(shifted);
  const parent = x.node;
  const node: Node | null = parent
    ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype)))
    : null;
  if (node) {
    tape.save(node, x.buffer);
    tape.save(node, index);
  }
  tape.release(index);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** `masked_fill(~mask, number)`: the inverted mask is made, and kept. */
function maskedFill(ctx: Context, x: Tensor): Tensor {
  const { tape, batch, tokens } = ctx;
  const mask = tape.bytes(batch * tokens * tokens);
  const node = x.node
    ? tape.node(x.elements, x.dtype, () => giveAs(tape, x, tape.alloc(x.elements, x.dtype), x.elements, x.dtype))
    : null;
  tape.save(node, mask);
  tape.release(mask);
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}

/** `torch.bmm` under autocast. */
function product(ctx: Context, a: Tensor, b: Tensor, elements: number): Tensor {
  const { tape, amp } = ctx;
  const [left, right] = [cast(tape, a, amp ?? a.dtype), cast(tape, b, amp ?? b.dtype)];
  const out = batchedMatmul(tape, left, right, elements);
  tape.drop(left);
  tape.drop(right);
  return out;
}

function swap(ctx: Context, x: Tensor, next: (x: Tensor) => Tensor): Tensor {
  const result = next(x);
  ctx.tape.drop(x);
  return result;
}
