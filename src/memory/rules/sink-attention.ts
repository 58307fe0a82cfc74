import type { AttentionOp } from '../../model/index.ts';
import { add, cast, concatenate, copy, dropout, keepOutput, repeat, scale, slice } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import { masked, product, swap } from './attention.ts';
import { bind, type Context, type Frame } from './context.ts';

/**
 * gpt-oss's eager attention: a learned score a head is joined to the S scores of every row, the row's largest is taken off,
 * softmax in the scores' dtype, the additional column dropped again. The names of all of it last until the call's end.
 */
export function sinkAttention(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape, batch, tokens } = ctx;
  const times = op.heads / op.kvHeads;
  const key = repeat(tape, k, times, op.kvHeads === 1);
  const value = repeat(tape, v, times, op.kvHeads === 1);
  const rows = batch * op.heads * tokens;
  const scores = masked(
    ctx,
    swap(ctx, product(ctx, q, key, rows * tokens), (x) => scale(tape, x)),
  );
  const sinks = expanded(ctx, ctx.states.get(op)!.weight!.tensor, rows);
  const joined = concatenate(tape, [scores, sinks]);
  const shifted = swap(ctx, joined, (x) => withoutMaximum(ctx, x, rows));
  const probabilities = keepOutput(tape, shifted);
  const kept = slice(tape, probabilities, rows * tokens, true);
  const thinned = dropout(tape, kept, op.dropout);
  const weights = cast(tape, thinned, v.dtype);
  tape.drop(thinned);
  tape.drop(scores);
  const mixed = product(ctx, weights, value, rows * op.headDim);
  const out = copy(tape, mixed, false);
  for (const tensor of [mixed, key, value, sinks, shifted, probabilities, kept]) tape.drop(tensor);
  bind(ctx, frame, op.output, out);
  bind(ctx, frame, 'attn_weights', weights);
}

/** One number a head as a view of one a row. */
function expanded(ctx: Context, sinks: Tensor, rows: number): Tensor {
  const { tape } = ctx;
  const parent = sinks.node;
  const node = parent
    ? tape.node(rows, sinks.dtype, () => tape.give(parent, tape.alloc(sinks.elements, sinks.dtype)))
    : null;
  sinks.buffer.refs += 1;
  return new Tensor(sinks.buffer, rows, sinks.dtype, node);
}

/** `x - x.max(dim=-1, keepdim=True).values`: the largest's place is kept; its gradient is put into zeros of x's size. */
function withoutMaximum(ctx: Context, x: Tensor, rows: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const places = tape.bytes(rows * 8);
  const largest = tape.alloc(rows, x.dtype);
  const node = parent
    ? tape.node(rows, x.dtype, () => {
        const zeros = tape.alloc(x.elements, x.dtype);
        const filled = tape.alloc(x.elements, x.dtype);
        tape.release(zeros);
        tape.give(parent, filled);
      })
    : null;
  if (node) tape.save(node, places);
  tape.release(places);
  const out = add(tape, x, new Tensor(largest, rows, x.dtype, node));
  tape.release(largest);
  return out;
}
