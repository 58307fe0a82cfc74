import type { AttentionOp } from '../../model/index.ts';
import {
  add,
  batchedMatmul,
  cast,
  constant,
  copy,
  dropout,
  giveAs,
  keepOutput,
  repeat,
  scale,
} from '../tape/primitives.ts';
import { type Dtype, F32, type Node, type Tape, Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';
import { withPrefix } from './prefix.ts';
import { writtenAttention } from './written-attention.ts';

/** Attention of one layer by the implementation the run has chosen; its result lies as (batch, tokens, heads × dim). */
export function attention(ctx: Context, op: AttentionOp, frame: Frame): void {
  withPrefix(ctx, op, frame);
  const q = read(frame, op.q);
  const k = read(frame, op.k);
  const v = read(frame, op.v);
  const bias = op.bias === undefined ? undefined : read(frame, op.bias);
  if (ctx.attention === 'eager') {
    if (!writtenAttention(ctx, op, frame, q, k, v)) eager(ctx, op, frame, q, k, v, bias);
  } else if (ctx.attention === 'sdpa') bind(ctx, frame, op.output, sdpa(ctx, op, q, k, v, bias));
  else bind(ctx, frame, op.output, fused(ctx, op, q, k, v, keyTokens(ctx, op, k), null));
}

const masks = (ctx: Context, op: AttentionOp): boolean =>
  op.mask === undefined || op.mask === 'causal' || (op.mask === 'padding' && ctx.padded);
const keyTokens = (ctx: Context, op: AttentionOp, k: Tensor): number =>
  k.elements / (ctx.batch * op.kvHeads * op.headDim);

/**
 * transformers' sdpa_attention_forward. Keys and values are repeated and a mask of B × 1 × S × S is made: that is so for
 * padded and packed rows; rows that are all one full sequence need neither, so this is the larger case.
 */
function sdpa(ctx: Context, op: AttentionOp, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | undefined): Tensor {
  const { tape } = ctx;
  const keys = keyTokens(ctx, op, k);
  // Without a mask the kernel takes grouped heads as they are.
  const times = op.repeats && masks(ctx, op) ? op.heads / op.kvHeads : 1;
  const key = repeat(tape, k, times, op.kvHeads === 1 && ctx.ownModules !== 'litgpt');
  const value = repeat(tape, v, times, op.kvHeads === 1);
  const out = fused(ctx, op, q, key, value, keys, additiveMask(ctx, op, q.dtype, keys, bias));
  tape.drop(key);
  tape.drop(value);
  return out;
}

/** What is added to the scores in the kernel: the mask as numbers, or the bias with the mask put into it. */
function additiveMask(
  ctx: Context,
  op: AttentionOp,
  query: Dtype,
  keys: number,
  bias: Tensor | undefined,
): Tensor | null {
  const { tape, batch, tokens, amp } = ctx;
  const dtype = amp ?? query;
  const elements = batch * tokens * keys;
  if (!bias) return masks(ctx, op) ? fusedMask(ctx, dtype, elements) : null;
  // Without a padding mask of its own a decoder's causal mask is the same for every row.
  const size = op.mask === 'padding' ? elements * op.heads : bias.elements;
  const filled = masks(ctx, op) ? fill(tape, bias, size) : tape.hold(bias);
  const out = cast(tape, filled, dtype);
  tape.drop(filled);
  return out;
}

/** `where(mask, x, number)` with a mask for every row. */
function fill(tape: Tape, x: Tensor, elements: number): Tensor {
  const node = x.node
    ? tape.node(elements, x.dtype, () => giveAs(tape, x, tape.alloc(elements, x.dtype), elements, x.dtype))
    : null;
  tape.save(node, null);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/**
 * The fused kernels (memory-efficient, flash): q, k, v, the output, one fp32 log-sum-exp a row and the mask are kept; the
 * backward pass adds an fp32 accumulator of q's size for 16-bit inputs, and a gradient of a bias for every row and head.
 * Takes over `mask`.
 */
function fused(
  ctx: Context,
  op: AttentionOp,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  keys: number,
  mask: Tensor | null,
): Tensor {
  const { tape, amp, batch, tokens } = ctx;
  const dtype = amp ?? q.dtype;
  const [query, key, value] = [cast(tape, q, dtype), cast(tape, k, dtype), cast(tape, v, dtype)];
  const rows = batch * op.heads * tokens;
  const elements = rows * (op.valueDim ?? op.headDim);
  const result = tape.alloc(elements, dtype);
  const lse = tape.bytes(rows * 4);
  let node: Node | null = null;
  if (query.node || key.node || value.node || mask?.node) {
    node = tape.node(elements, dtype, () => {
      const delta = tape.bytes(rows * 4);
      const accumulator = dtype === F32 ? null : tape.bytes(query.elements * 4);
      const toQuery = tape.allocLike(query.elements, dtype, query.buffer);
      const grouped = key.elements / keys < query.elements / tokens;
      const expanded = grouped ? [tape.alloc(key.elements, dtype), tape.alloc(value.elements, dtype)] : [];
      const toKey = tape.allocLike(key.elements, dtype, key.buffer);
      const toValue = tape.allocLike(value.elements, dtype, value.buffer);
      const pairs = rows * keys;
      const toMask = mask?.node ? tape.alloc(pairs, dtype) : null;
      if (accumulator) tape.release(accumulator);
      tape.release(delta);
      for (const buffer of expanded) tape.release(buffer);
      if (toMask) giveAs(tape, mask!, toMask, pairs, dtype);
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
    if (mask) tape.save(node, mask.buffer);
  }
  tape.release(lse);
  if (mask) tape.drop(mask);
  tape.drop(query);
  tape.drop(key);
  tape.drop(value);
  return new Tensor(result, elements, dtype, node);
}

/** A boolean mask becomes an additive one at every use; one that is additive already is taken as it is, or cast. */
function fusedMask(ctx: Context, dtype: Dtype, pairs: number): Tensor {
  const { tape, constants } = ctx;
  const elements = pairs * constants.maskHeads;
  if (constants.mask && ctx.hiddenDtype === dtype) return tape.hold(constant(constants.mask, elements, dtype));
  return constant(tape.alloc(elements, dtype), elements, dtype);
}

/** eager_attention_forward: the S × S scores are real, several times. */
function eager(
  ctx: Context,
  op: AttentionOp,
  frame: Frame,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  bias: Tensor | undefined,
): void {
  const { tape, batch, tokens } = ctx;
  const times = op.heads / op.kvHeads;
  const key = repeat(tape, k, times, op.kvHeads === 1);
  const value = repeat(tape, v, times, op.kvHeads === 1);
  const keys = keyTokens(ctx, op, k);
  const scoreElements = batch * op.heads * tokens * keys;
  const raw = product(ctx, q, key, scoreElements);
  const weights = dropped(
    ctx,
    op,
    op.eager === 'in_place' ? inPlace(ctx, raw) : scaled(ctx, op, raw, q.dtype, v.dtype, keys, bias),
  );
  const mixed = product(ctx, weights, value, batch * op.heads * tokens * (op.valueDim ?? op.headDim));
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
function scaled(
  ctx: Context,
  op: AttentionOp,
  raw: Tensor,
  query: Dtype,
  value: Dtype,
  keys: number,
  bias: Tensor | undefined,
): Tensor {
  const { tape } = ctx;
  let scores = swap(ctx, raw, (x) => scale(tape, x));
  if (op.softcap) {
    scores = swap(ctx, scores, (x) => scale(tape, x));
    scores = swap(ctx, scores, (x) => keepOutput(tape, x));
    scores = swap(ctx, scores, (x) => scale(tape, x));
  }
  if (bias) scores = swap(ctx, scores, (x) => add(tape, x, bias));
  if (masks(ctx, op)) scores = masked(ctx, scores, keys);
  const wide = op.eager === 'upcast' || ctx.amp !== undefined ? F32 : scores.dtype;
  const upcast = cast(tape, scores, wide);
  const probabilities = swap(ctx, upcast, (x) => keepOutput(tape, x));
  tape.drop(scores);
  if (op.eager === 'bare') return probabilities;
  return swap(ctx, probabilities, (x) => cast(tape, x, op.eager === 'upcast' ? query : value));
}

/** Falcon: divided in place, and the name of the scores lasts until the softmax in the hidden states' dtype (fp32 under autocast) is done. */
function inPlace(ctx: Context, scores: Tensor): Tensor {
  const { tape } = ctx;
  const sum = masked(ctx, tape.hold(scores), ctx.tokens);
  const typed = cast(tape, sum, ctx.amp === undefined ? ctx.hiddenDtype : F32);
  const probabilities = swap(ctx, typed, (x) => keepOutput(tape, x));
  tape.drop(sum);
  tape.drop(scores);
  return probabilities;
}

export function masked(ctx: Context, scores: Tensor, keys = ctx.tokens): Tensor {
  const { tape, constants, batch, tokens } = ctx;
  if (!constants.mask) return scores;
  const mask = constant(constants.mask, batch * constants.maskHeads * tokens * keys, ctx.hiddenDtype);
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
