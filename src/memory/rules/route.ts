import type { MoeOp } from '../../model/index.ts';
import type { MoeState, StackedWeight } from '../parameters.ts';
import { cast, concatenate, keepOutput, matmul, multiply, scale } from '../tape/primitives.ts';
import { type Buffer, F32, type Tensor, Tensor as Value } from '../tape/tape.ts';
import type { Context } from './context.ts';
import { foldFactors, gather } from './stacked.ts';

/** The weights of the chosen experts and their numbers (int64); both are the caller's. */
export interface Routed {
  readonly weights: Tensor;
  readonly indices: Buffer;
}

/** How a sparse block chooses its experts; see Routing for the forms. `given`: logits that a layer before has made. */
export function route(ctx: Context, op: MoeOp, state: MoeState, x: Tensor, given: Tensor | undefined): Routed {
  const rows = x.elements / op.hiddenSize;
  switch (op.routing?.form) {
    case undefined:
      return softmaxFirst(ctx, op, given ?? project(ctx, op, state, x, false), rows, given !== undefined);
    case 'topk_softmax':
      return topkFirst(ctx, op, project(ctx, op, state, x, false), rows, op.routing.wide, x);
    case 'sigmoid_groups':
      return sigmoidGroups(ctx, op, project(ctx, op, state, x, true), rows, op.routing.groups);
    case 'softmax_groups':
      return op.routing.narrow
        ? narrowSoftmax(ctx, op, project(ctx, op, state, x, false), rows)
        : softmaxGroups(ctx, op, project(ctx, op, state, x, true), rows, op.routing.groups);
    case 'corrected_softmax':
      return correctedSoftmax(ctx, op, project({ ...ctx, amp: undefined }, op, state, x, true), rows, x);
    case 'sigmoid':
      return sigmoid(ctx, op, given ? ctx.tape.hold(given) : project(ctx, op, state, x, false), rows, op.routing);
    case 'sparse_mixer':
      return sparseMixer(ctx, op, given!, rows);
  }
}

/** `F.linear(x, weight)`; `wide`: of fp32 copies of both. */
function project(ctx: Context, op: MoeOp, state: MoeState, x: Tensor, wide: boolean): Tensor {
  const { tape } = ctx;
  const folded = foldFactors(ctx, state.router as StackedWeight);
  const weight = folded.get();
  const input = wide ? cast(tape, x, F32) : tape.hold(x);
  const factor = wide ? cast(tape, weight, F32) : tape.hold(weight);
  const dtype = ctx.amp ?? factor.dtype;
  const [left, right] = [cast(tape, input, dtype), cast(tape, factor, dtype)];
  const bias = state.biases?.router.tensor ?? null;
  const addend = bias ? cast(tape, bias, dtype) : null;
  const logits = matmul(tape, left, right, addend, x.elements / op.hiddenSize, op.experts);
  for (const tensor of [input, factor, left, right, weight]) tape.drop(tensor);
  if (addend) tape.drop(addend);
  folded.end();
  return logits;
}

/** Softmax over all experts in fp32, the largest, optionally normalised (in place). */
function softmaxFirst(ctx: Context, op: MoeOp, logits: Tensor, rows: number, given: boolean): Routed {
  const { tape } = ctx;
  const wide = cast(tape, logits, F32);
  const probabilities = keepOutput(tape, wide);
  tape.drop(wide);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  let weights = gather(ctx, probabilities, rows * op.expertsPerToken, indices);
  if (op.normalise) {
    const sum = tape.alloc(rows, F32);
    const divided = multiply(tape, weights, new Value(sum, rows, F32, weights.node));
    tape.release(sum);
    tape.drop(weights);
    weights = divided;
  }
  if (op.castWeights) {
    const narrow = cast(tape, weights, logits.dtype);
    tape.drop(weights);
    weights = narrow;
  }
  tape.drop(probabilities);
  if (!given) tape.drop(logits);
  return { weights, indices };
}

/** The largest logits, then a softmax over those. */
function topkFirst(ctx: Context, op: MoeOp, logits: Tensor, rows: number, wide: boolean, x: Tensor): Routed {
  const { tape } = ctx;
  const scores = wide ? cast(tape, logits, F32) : tape.hold(logits);
  tape.drop(logits);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  const chosen = gather(ctx, scores, rows * op.expertsPerToken, indices);
  // Its dtype is given or fp32: autocast changes nothing.
  const soft = keepOutput(tape, chosen);
  tape.drop(chosen);
  const weights = wide ? cast(tape, soft, x.dtype) : tape.hold(soft);
  tape.drop(soft);
  tape.drop(scores);
  return { weights, indices };
}

/** Sigmoid scores; a correction and a mask of groups decide, without gradients; then normalised and multiplied by a number. */
function sigmoidGroups(ctx: Context, op: MoeOp, logits: Tensor, rows: number, groups: number): Routed {
  const { tape } = ctx;
  const scores = keepOutput(tape, logits);
  const corrected = tape.alloc(scores.elements, F32);
  const masks = groupMask(ctx, op, rows, groups);
  const spare = [tape.bytes(scores.elements), tape.bytes(scores.elements)];
  tape.release(spare[0]!);
  const masked = tape.alloc(scores.elements, F32);
  tape.release(corrected);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  let weights = gather(ctx, scores, rows * op.expertsPerToken, indices);
  if (op.normalise) weights = normalised(ctx, weights, rows);
  const scaled = scale(tape, weights);
  tape.drop(weights);
  for (const buffer of [masked, spare[1]!, ...masks]) tape.release(buffer);
  tape.drop(scores);
  tape.drop(logits);
  return { weights: scaled, indices };
}

function softmaxGroups(ctx: Context, op: MoeOp, logits: Tensor, rows: number, groups: number): Routed {
  const { tape } = ctx;
  const wide = cast(tape, logits, F32);
  let scores = keepOutput(tape, wide);
  tape.drop(wide);
  const masks = groups > 1 ? groupMask(ctx, op, rows, groups) : [];
  if (groups > 1) {
    const bits = tape.bytes(scores.elements);
    const all = scores;
    const parent = all.node;
    const node = parent ? tape.node(all.elements, F32, () => tape.give(parent, tape.alloc(all.elements, F32))) : null;
    tape.save(node, bits);
    scores = new Value(tape.alloc(all.elements, F32), all.elements, F32, node);
    tape.release(bits);
    tape.drop(all);
  }
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  const weights = gather(ctx, scores, rows * op.expertsPerToken, indices);
  const scaled = scale(tape, weights);
  tape.drop(weights);
  for (const buffer of masks) tape.release(buffer);
  tape.drop(scores);
  tape.drop(logits);
  return { weights: scaled, indices };
}

/** What `group_mask` and its expansion hold while the router runs. */
function groupMask(ctx: Context, op: MoeOp, rows: number, groups: number): Buffer[] {
  const { tape } = ctx;
  return [tape.alloc(rows * groups, F32), tape.alloc(rows * groups, F32), tape.alloc(rows * op.experts, F32)];
}

function correctedSoftmax(ctx: Context, op: MoeOp, logits: Tensor, rows: number, x: Tensor): Routed {
  const { tape } = ctx;
  const probabilities = keepOutput(tape, logits);
  const corrected = tape.alloc(probabilities.elements, F32);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  tape.release(corrected);
  const chosen = gather(ctx, probabilities, rows * op.expertsPerToken, indices);
  tape.drop(probabilities);
  const divided = normalised(ctx, chosen, rows);
  const weights = cast(tape, divided, x.dtype);
  tape.drop(divided);
  tape.drop(logits);
  return { weights, indices };
}

function sigmoid(
  ctx: Context,
  op: MoeOp,
  logits: Tensor,
  rows: number,
  { corrected, wide }: { readonly corrected: boolean; readonly wide?: boolean },
): Routed {
  const { tape } = ctx;
  const input = wide ? cast(tape, logits, F32) : tape.hold(logits);
  const scores = keepOutput(tape, input);
  tape.drop(input);
  const spare = corrected ? tape.alloc(scores.elements, F32) : null;
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  let weights = gather(ctx, scores, rows * op.expertsPerToken, indices);
  if (op.normalise) weights = normalised(ctx, weights, rows);
  const scaled = wide ? tape.hold(weights) : scale(tape, weights);
  tape.drop(weights);
  if (spare) tape.release(spare);
  tape.drop(scores);
  tape.drop(logits);
  return { weights: scaled, indices };
}

/** Mistral 4: a softmax in the hidden states' dtype, groups that only decide, the weights normalised in place and scaled. */
function narrowSoftmax(ctx: Context, op: MoeOp, logits: Tensor, rows: number): Routed {
  const { tape } = ctx;
  const scores = keepOutput(tape, logits);
  const masked = tape.alloc(scores.elements, scores.dtype);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  let weights = gather(ctx, scores, rows * op.expertsPerToken, indices);
  if (op.normalise) weights = normalised(ctx, weights, rows);
  const scaled = scale(tape, weights);
  tape.drop(weights);
  tape.release(masked);
  tape.drop(scores);
  tape.drop(logits);
  return { weights: scaled, indices };
}

/** Phi MoE: two experts one after the other, each sampled from a softmax over what is near enough to the best. */
function sparseMixer(ctx: Context, op: MoeOp, logits: Tensor, rows: number): Routed {
  const { tape } = ctx;
  const weights: Tensor[] = [];
  const kept: Buffer[] = [];
  for (let round = 0; round < op.expertsPerToken; round += 1) {
    const probabilities = keepOutput(tape, logits);
    const index = tape.bytes(rows * 8);
    weights.push(gather(ctx, probabilities, rows, index));
    kept.push(index);
    tape.drop(probabilities);
  }
  const joined = concatenate(tape, weights);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  for (const tensor of weights) tape.drop(tensor);
  for (const buffer of kept) tape.release(buffer);
  return { weights: joined, indices };
}

/** Divided by their sum; takes over `weights`. */
function normalised(ctx: Context, weights: Tensor, rows: number): Tensor {
  const { tape } = ctx;
  const sum = tape.alloc(rows, weights.dtype);
  const divided = multiply(tape, weights, new Value(sum, rows, weights.dtype, weights.node));
  tape.release(sum);
  tape.drop(weights);
  return divided;
}
