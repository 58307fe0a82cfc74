import type { AttentionOp } from '../../model/index.ts';
import { add, batchedMatmul, cast, constant, copy, dropout, keepOutput, repeat, scale } from '../tape/primitives.ts';
import { type Buffer, type Dtype, F32, type Node, Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';
import { writtenAttention } from './written-attention.ts';

/** Attention of one layer by the implementation the run has chosen; its result lies as (batch, tokens, heads × dim). */
export function attention(ctx: Context, op: AttentionOp, frame: Frame): void {
  const q = read(frame, op.q);
  const k = read(frame, op.k);
  const v = read(frame, op.v);
  if (ctx.attention === 'eager') {
    if (!writtenAttention(ctx, op, frame, q, k, v)) eager(ctx, op, frame, q, k, v);
  } else
    bind(ctx, frame, op.output, ctx.attention === 'sdpa' ? sdpa(ctx, op, q, k, v) : fused(ctx, op, q, k, v, false));
}

/**
 * transformers' sdpa_attention_forward. Keys and values are repeated and a mask of B × 1 × S × S is made: that is so for
 * padded and packed rows; rows that are all one full sequence need neither, so this is the larger case.
 */
function sdpa(ctx: Context, op: AttentionOp, q: Tensor, k: Tensor, v: Tensor): Tensor {
  const { tape } = ctx;
  const times = op.repeats ? op.heads / op.kvHeads : 1;
  const key = repeat(tape, k, times, op.kvHeads === 1);
  const value = repeat(tape, v, times, op.kvHeads === 1);
  const out = fused(ctx, op, q, key, value, true);
  tape.drop(key);
  tape.drop(value);
  return out;
}

/**
 * The fused kernels (memory-efficient, flash): q, k, v, the output, one fp32 log-sum-exp a row and the mask are kept; the
 * backward pass adds an fp32 accumulator of q's size for 16-bit inputs.
 */
function fused(ctx: Context, op: AttentionOp, q: Tensor, k: Tensor, v: Tensor, masked: boolean): Tensor {
  const { tape, amp, batch, tokens } = ctx;
  const dtype = amp ?? q.dtype;
  const [query, key, value] = [cast(tape, q, dtype), cast(tape, k, dtype), cast(tape, v, dtype)];
  const mask = masked ? fusedMask(ctx, dtype) : null;
  const rows = batch * op.heads * tokens;
  const elements = rows * op.headDim;
  const result = tape.alloc(elements, dtype);
  const lse = tape.bytes(rows * 4);
  let node: Node | null = null;
  if (query.node || key.node || value.node) {
    node = tape.node(elements, dtype, () => {
      const delta = tape.bytes(rows * 4);
      const accumulator = dtype === F32 ? null : tape.bytes(elements * 4);
      const toQuery = tape.allocLike(elements, dtype, query.buffer);
      const grouped = key.elements < query.elements;
      const expanded = grouped ? [tape.alloc(key.elements, dtype), tape.alloc(value.elements, dtype)] : [];
      const toKey = tape.allocLike(key.elements, dtype, key.buffer);
      const toValue = tape.allocLike(value.elements, dtype, value.buffer);
      if (accumulator) tape.release(accumulator);
      tape.release(delta);
      for (const buffer of expanded) tape.release(buffer);
      for (const [tensor, grad] of [
        [query, toQuery],
        [key, toKey],
        [value, toValue],
      ] as const) {
        if (tensor.node) tape.give(tensor.node, grad);
        else tape.release(grad);
      }
    });
    tape.save(node, query.buffer);
    tape.save(node, key.buffer);
    tape.save(node, value.buffer);
    tape.save(node, result);
    tape.save(node, lse);
    if (mask) tape.save(node, mask);
  }
  tape.release(lse);
  if (mask) tape.release(mask);
  tape.drop(query);
  tape.drop(key);
  tape.drop(value);
  return new Tensor(result, elements, dtype, node);
}

/** A boolean mask becomes an additive one at every use; one that is additive already is taken as it is, or cast. */
function fusedMask(ctx: Context, dtype: Dtype): Buffer {
  const { tape, constants, batch, tokens } = ctx;
  const elements = batch * constants.maskHeads * tokens * tokens;
  if (constants.mask && ctx.hiddenDtype === dtype) {
    constants.mask.refs += 1;
    return constants.mask;
  }
  return tape.alloc(elements, dtype);
}

/** eager_attention_forward: the S × S scores are real, several times. */
function eager(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape, batch, tokens } = ctx;
  const times = op.heads / op.kvHeads;
  const key = repeat(tape, k, times, op.kvHeads === 1);
  const value = repeat(tape, v, times, op.kvHeads === 1);
  const scoreElements = batch * op.heads * tokens * tokens;
  const raw = product(ctx, q, key, scoreElements);
  const weights = dropped(
    ctx,
    op,
    op.eager === 'in_place' ? inPlace(ctx, raw) : scaled(ctx, op, raw, q.dtype, v.dtype),
  );
  const mixed = product(ctx, weights, value, batch * op.heads * tokens * op.headDim);
  const out = copy(tape, mixed, false);
  tape.drop(mixed);
  tape.drop(key);
  tape.drop(value);
  bind(ctx, frame, op.output, out);
  bind(ctx, frame, 'attn_weights', weights);
}

export function dropped(ctx: Context, op: AttentionOp, weights: Tensor): Tensor {
  const out = dropout(ctx.tape, weights, op.dropout);
  ctx.tape.drop(weights);
  return out;
}

/** Scores times a number, capped, masked, softmax (in fp32 when asked to, and always under autocast), cast. Takes over `raw`. */
function scaled(ctx: Context, op: AttentionOp, raw: Tensor, query: Dtype, value: Dtype): Tensor {
  const { tape } = ctx;
  let scores = swap(ctx, raw, (x) => scale(tape, x));
  if (op.softcap) {
    scores = swap(ctx, scores, (x) => scale(tape, x));
    scores = swap(ctx, scores, (x) => keepOutput(tape, x));
    scores = swap(ctx, scores, (x) => scale(tape, x));
  }
  scores = masked(ctx, scores);
  const wide = op.eager === 'upcast' || ctx.amp !== undefined ? F32 : scores.dtype;
  const upcast = swap(ctx, scores, (x) => cast(tape, x, wide));
  const probabilities = swap(ctx, upcast, (x) => keepOutput(tape, x));
  return swap(ctx, probabilities, (x) => cast(tape, x, op.eager === 'upcast' ? query : value));
}

/** Falcon: divided in place, and the name of the scores lasts until the softmax in the hidden states' dtype (fp32 under autocast) is done. */
function inPlace(ctx: Context, scores: Tensor): Tensor {
  const { tape } = ctx;
  const sum = masked(ctx, tape.hold(scores));
  const typed = swap(ctx, sum, (x) => cast(tape, x, ctx.amp === undefined ? ctx.hiddenDtype : F32));
  const probabilities = swap(ctx, typed, (x) => keepOutput(tape, x));
  tape.drop(scores);
  return probabilities;
}

export function masked(ctx: Context, scores: Tensor): Tensor {
  const { tape, constants, batch, tokens } = ctx;
  if (!constants.mask) return scores;
  const mask = constant(constants.mask, batch * constants.maskHeads * tokens * tokens, ctx.hiddenDtype);
  return swap(ctx, scores, (x) => add(tape, x, mask));
}

export function swap(ctx: Context, x: Tensor, next: (x: Tensor) => Tensor): Tensor {
  const result = next(x);
  ctx.tape.drop(x);
  return result;
}

/** torch.matmul of (batch, heads, …): autocast casts both; factors whose batch and heads cannot be merged in a view are copied. */
export function product(ctx: Context, a: Tensor, b: Tensor, elements: number): Tensor {
  const { tape, amp } = ctx;
  const left = prepared(ctx, a, amp ?? a.dtype);
  const right = prepared(ctx, b, amp ?? b.dtype);
  const out = batchedMatmul(tape, left, right, elements);
  tape.drop(left);
  tape.drop(right);
  return out;
}

function prepared(ctx: Context, x: Tensor, dtype: Tensor['dtype']): Tensor {
  const { tape } = ctx;
  const narrow = cast(tape, x, dtype);
  if (narrow.buffer.headMajor || ctx.batch === 1) return narrow;
  const out = copy(tape, narrow, true);
  tape.drop(narrow);
  return out;
}
