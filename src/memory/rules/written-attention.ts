import type { AttentionOp } from '../../model/index.ts';
import { add, batchedMatmul, cast, constant, copy, keepOutput, scale } from '../tape/primitives.ts';
import { F32, Tensor } from '../tape/tape.ts';
import { dropped, masked, product, swap } from './attention.ts';
import { bind, type Context, type Frame, read } from './context.ts';
import { sinkAttention } from './sink-attention.ts';

/**
 * Eager attention of models that write it out in their own way (see EagerForm); false: not one of them. Values with a name
 * in the Python function last until the frame ends, so they are bound here.
 */
export function writtenAttention(
  ctx: Context,
  op: AttentionOp,
  frame: Frame,
  q: Tensor,
  k: Tensor,
  v: Tensor,
): boolean {
  switch (op.eager) {
    case 'fp32':
      inFp32(ctx, op, frame, q, k, v);
      return true;
    case 'baddbmm':
      fusedScores(ctx, op, frame, q, k, v);
      return true;
    case 'biased':
      biased(ctx, op, frame, q, k, v);
      return true;
    case 'biased_in_place':
      biasedInPlace(ctx, op, frame, q, k, v);
      return true;
    case 'named':
      named(ctx, op, frame, q, k, v);
      return true;
    case 'sinks':
      sinkAttention(ctx, op, frame, q, k, v);
      return true;
    default:
      return false;
  }
}

const scoreElements = (ctx: Context, op: AttentionOp): number => ctx.batch * op.heads * ctx.tokens * ctx.tokens;
const resultElements = (ctx: Context, op: AttentionOp): number => ctx.batch * op.heads * ctx.tokens * op.headDim;

/** Softmax in fp32; the scores are the call's argument and last as long as it. Takes them over. */
function probabilities(ctx: Context, scores: Tensor): Tensor {
  const wide = cast(ctx.tape, scores, F32);
  const soft = swap(ctx, wide, (x) => keepOutput(ctx.tape, x));
  ctx.tape.drop(scores);
  return soft;
}

/** `weights @ v`, heads merged in a copy; takes over `weights`. */
function mix(ctx: Context, op: AttentionOp, frame: Frame, weights: Tensor, v: Tensor): void {
  const { tape } = ctx;
  const mixed = product(ctx, weights, v, resultElements(ctx, op));
  const out = copy(tape, mixed, false);
  tape.drop(mixed);
  bind(ctx, frame, op.output, out);
  bind(ctx, frame, 'attn_weights', weights);
}

/** GPT-J, GPT-Neo, CodeGen: scores of fp32 copies, scaled or masked by the model's own mask, then the shared one. */
function inFp32(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape } = ctx;
  const query = cast(tape, q, F32);
  const key = cast(tape, k, F32);
  const raw = product(ctx, query, key, scoreElements(ctx, op));
  const scaled = swap(ctx, raw, (x) => scale(tape, x));
  const soft = probabilities(ctx, masked(ctx, scaled));
  const weights = dropped(
    ctx,
    op,
    swap(ctx, soft, (x) => cast(tape, x, v.dtype)),
  );
  mix(ctx, op, frame, weights, v);
  tape.drop(query);
  tape.drop(key);
}

/** BLOOM: q, k and v as (batch × heads, tokens, dim), which copies them, and `alibi.baddbmm(q, k)`. */
function fusedScores(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape, amp } = ctx;
  const merged = (x: Tensor): Tensor => (ctx.batch === 1 ? tape.hold(x) : copy(tape, x, true));
  const [query, key, value] = [merged(q), merged(k), merged(v)];
  const [left, right] = [cast(tape, query, amp ?? query.dtype), cast(tape, key, amp ?? key.dtype)];
  const scores = scaledMatmul(ctx, left, right, scoreElements(ctx, op));
  tape.drop(left);
  tape.drop(right);
  const sum = masked(ctx, tape.hold(scores));
  const soft = probabilities(ctx, tape.hold(sum));
  const weights = dropped(
    ctx,
    op,
    swap(ctx, soft, (x) => cast(tape, x, query.dtype)),
  );
  mix(ctx, op, frame, weights, value);
  bind(ctx, frame, 'attention_scores', scores);
  bind(ctx, frame, '_masked_scores', sum);
  for (const tensor of [query, key, value]) tape.drop(tensor);
}

/** baddbmm with alpha: each gradient is a product that is then multiplied. */
const scaledMatmul = (ctx: Context, a: Tensor, b: Tensor, elements: number): Tensor =>
  batchedMatmul(ctx.tape, scaledGradient(ctx, a), scaledGradient(ctx, b), elements);

/** The same values; the gradient is multiplied by a number on its way. */
function scaledGradient({ tape }: Context, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  return new Tensor(x.buffer, x.elements, x.dtype, node);
}

/** MPT: scaled, an fp32 bias added, masked_fill, softmax, the values' dtype. */
function biased(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape } = ctx;
  const raw = product(ctx, q, k, scoreElements(ctx, op));
  const scaled = swap(ctx, raw, (x) => scale(tape, x));
  const shifted = swap(ctx, scaled, (x) => add(tape, x, bias(ctx, op, F32)));
  const filled = swap(ctx, shifted, (x) => scale(tape, x));
  // `attention_scores` is the name of the filled scores until the frame ends.
  const soft = probabilities(ctx, tape.hold(filled));
  bind(ctx, frame, 'attention_scores', filled);
  mix(
    ctx,
    op,
    frame,
    dropped(
      ctx,
      op,
      swap(ctx, soft, (x) => cast(tape, x, v.dtype)),
    ),
    v,
  );
}

const bias = (ctx: Context, op: AttentionOp, dtype: Tensor['dtype']): Tensor =>
  constant(ctx.tape.bytes(0), op.heads * ctx.tokens, dtype);

/** MPNet: scores divided, a bias added in place, the mask, softmax as it comes out; scores and probabilities have names. */
function named(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape } = ctx;
  const raw = product(ctx, q, k, scoreElements(ctx, op));
  const divided = swap(ctx, raw, (x) => scale(tape, x));
  const shifted =
    op.bias === undefined ? divided : swap(ctx, divided, (x) => add(tape, x, read(frame, op.bias!), true));
  const scores = ctx.padded ? masked(ctx, shifted) : shifted;
  const wide = cast(tape, scores, ctx.amp === undefined ? scores.dtype : F32);
  const soft = swap(ctx, wide, (x) => keepOutput(tape, x));
  mix(ctx, op, frame, dropped(ctx, op, soft), v);
  bind(ctx, frame, 'attention_scores', scores);
}

/** Falcon with ALiBi: the product, its fp32 copy and the biased scores all have names. */
function biasedInPlace(ctx: Context, op: AttentionOp, frame: Frame, q: Tensor, k: Tensor, v: Tensor): void {
  const { tape } = ctx;
  const raw = product(ctx, q, k, scoreElements(ctx, op));
  const wide = cast(tape, raw, F32);
  const logits = scaledGradient(ctx, add(tape, wide, bias(ctx, op, ctx.hiddenDtype)));
  const sum = masked(ctx, tape.hold(logits));
  // The sum is the call's argument: it lasts until the softmax is done.
  const typed = cast(tape, sum, ctx.amp === undefined ? ctx.hiddenDtype : F32);
  const soft = swap(ctx, typed, (x) => keepOutput(tape, x));
  tape.drop(sum);
  const weights = dropped(ctx, op, soft);
  mix(ctx, op, frame, weights, v);
  for (const [name, tensor] of [
    ['matmul_result', raw],
    ['attention_scores', wide],
    ['attention_logits', logits],
  ] as const) {
    bind(ctx, frame, name, tensor);
  }
}
