import type { ModelDescription, Op } from '../../model/index.ts';
import type { LossImpl } from '../../spec/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import { type Context, type Frame, read } from '../rules/context.ts';
import { linear } from '../rules/linear.ts';
import { runOps, softcap } from '../rules/run-ops.ts';
import { share } from '../tape/gradients.ts';
import { add, cast, copy, keepOutput, matmul, offset, scale, slice } from '../tape/primitives.ts';
import { F32, type Node, type Tape, Tensor } from '../tape/tape.ts';
import { split } from '../tape/views.ts';
import { completionLoss, oddsRatioLoss, preferenceLoss } from './preference-loss.ts';
import { smoothedLoss } from './smoothed-loss.ts';

/** Rows the chunked loss projects at a time (TRL `_CHUNKED_LM_HEAD_CHUNK_SIZE`). */
export const CHUNK_ROWS = 256;

/** The loss's root: its backward starts everything. */
export type LossRoot = Node;

/** What the loss is computed on. */
export interface LossOptions {
  /**
   * `tokens`: the next token; `smoothed`: the same with label smoothing; `pairs` (DPO), `singles` (KTO): log-probabilities of
   * rows, and `reference`: of the model they are compared with; `odds`: ORPO; `completion`: GRPO and RLOO; `pooled`: one
   * score a row.
   */
  readonly kind: 'tokens' | 'smoothed' | 'pairs' | 'singles' | 'reference' | 'odds' | 'completion' | 'pooled';
  readonly impl: LossImpl;
  /** transformers before 4.49 shifts the logits, which copies them, and not the labels. */
  readonly shiftsLogits: boolean;
  /** Before 4.46 the fp32 logits take the 16-bit ones' name. */
  readonly rebindsLogits: boolean;
  /** The scoring head of a pooled loss. */
  readonly scoring: readonly Op[] | undefined;
  /** Tokens of a row that were generated. */
  readonly completionTokens: number;
}

export interface LossResult {
  /** The node that the backward pass starts from; null without gradients. */
  readonly root: LossRoot | null;
  /** What is left of the loss once a reference model has run. */
  readonly finish?: () => void;
}

/** Head and loss on the last hidden states; takes over `hidden`. */
export function headAndLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
  options: LossOptions,
): LossResult {
  switch (options.kind) {
    case 'pooled':
      return { root: pooledLoss(ctx, hidden, options.scoring ?? []) };
    case 'pairs':
    case 'singles':
    case 'reference':
      return preferenceLoss(ctx, description, plan, hidden, options.kind);
    case 'odds':
      return oddsRatioLoss(ctx, description, plan, hidden);
    case 'completion':
      return completionLoss(ctx, description, plan, hidden, options.completionTokens);
    case 'smoothed':
      return smoothedLoss(ctx, description, plan, hidden);
    case 'tokens':
      return { root: tokenLoss(ctx, description, plan, hidden, options) };
  }
}

function tokenLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
  options: LossOptions,
): LossRoot | null {
  switch (options.impl) {
    case 'full':
    case 'fused_logits':
      return fullLoss(ctx, description, plan, hidden, options);
    case 'chunked':
      return chunkedLoss(ctx, description, plan, hidden);
    case 'chunked_logits':
      return chunkedLogitsLoss(ctx, description, plan, hidden);
    case 'fused':
      return fusedLoss(ctx, description, plan, hidden);
  }
}

/** transformers' ForCausalLMLoss: logits of every token, an fp32 copy, its log-softmax. */
function fullLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
  options: LossOptions,
): LossRoot | null {
  const { tape } = ctx;
  const logits = logitsOf(ctx, description, plan, hidden);
  // Encoder-decoder classes hand the logits to the loss as they are; autocast makes an fp32 copy there.
  const plain = description.form === 'seq2seq' && ctx.amp === undefined;
  const wide = plain ? tape.hold(logits) : cast(tape, logits, F32);
  if (options.rebindsLogits) tape.drop(logits);
  const view = options.shiftsLogits ? slice(tape, wide, wide.elements, false) : tape.hold(wide);
  const shifted = options.shiftsLogits ? copy(tape, view, false) : tape.hold(view);
  const { root, kept } = options.impl === 'fused_logits' ? inPlaceLoss(tape, shifted) : crossEntropy(tape, shifted);
  tape.drop(kept);
  tape.drop(shifted);
  tape.drop(view);
  tape.drop(wide);
  if (!options.rebindsLogits) tape.drop(logits);
  tape.drop(hidden);
  return root;
}

export function logitsOf(ctx: Context, description: ModelDescription, plan: ParameterPlan, hidden: Tensor): Tensor {
  const { tape } = ctx;
  const states = transformed(ctx, description, hidden);
  let logits = linear(ctx, plan.head, states, {
    inFeatures: description.head.inFeatures ?? description.hiddenSize,
    outFeatures: description.vocabSize,
    form: 'linear',
  });
  tape.drop(states);
  if (description.head.offset) {
    const moved = offset(tape, logits);
    tape.drop(logits);
    logits = moved;
  }
  if (description.head.scaled) {
    const scaled = scale(tape, logits);
    tape.drop(logits);
    logits = scaled;
  }
  if (description.head.softcap) {
    const capped = softcap(ctx, logits);
    tape.drop(logits);
    logits = capped;
  }
  if (description.head.wide) {
    const wide = cast(tape, logits, F32);
    tape.drop(logits);
    logits = wide;
  }
  return logits;
}

/** What the head does before it projects. */
function transformed(ctx: Context, { head }: ModelDescription, hidden: Tensor): Tensor {
  if (!head.transform) return ctx.tape.hold(hidden);
  const frame: Frame = new Map([['hidden_states', ctx.tape.hold(hidden)]]);
  runOps(ctx, head.transform, frame);
  const out = read(frame, 'hidden_states');
  frame.delete('hidden_states');
  for (const value of frame.values()) ctx.tape.drop(value);
  return out;
}

/** Scores of whole rows; the token head is not there. */
function pooledLoss(ctx: Context, hidden: Tensor, scoring: readonly Op[]): LossRoot | null {
  const { tape } = ctx;
  const frame: Frame = new Map([['hidden_states', hidden]]);
  runOps(ctx, scoring, frame);
  const scores = read(frame, 'logits');
  const target = scores.node;
  const root = target ? tape.node(1, F32, () => tape.give(target, tape.alloc(scores.elements, scores.dtype))) : null;
  for (const value of frame.values()) tape.drop(value);
  return root;
}

/** log_softmax keeps its result; nll_loss makes a gradient of the same size. */
function crossEntropy(tape: Tape, wide: Tensor): { root: LossRoot | null; kept: Tensor } {
  const kept = keepOutput(tape, wide);
  const target = kept.node;
  if (!target) return { root: null, kept };
  const root = tape.node(1, F32, () => tape.give(target, tape.alloc(wide.elements, wide.dtype)));
  tape.save(root, kept.buffer);
  return { root, kept };
}

/** One kernel over the logits: they are kept and hold their own gradient afterwards. */
function inPlaceLoss(tape: Tape, logits: Tensor): { root: LossRoot | null; kept: Tensor } {
  const kept = tape.hold(logits);
  const target = logits.node;
  if (!target) return { root: null, kept };
  const root = tape.node(1, F32, () => tape.give(target, share(logits.buffer)));
  tape.save(root, logits.buffer);
  return { root, kept };
}

/**
 * TRL's chunked_nll: the hidden states without the last token, sorted by validity, then checkpointed blocks of 256 rows.
 * Three blocks stand for all: the first adds to nothing, the others to the sum so far.
 */
function chunkedLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
): LossRoot | null {
  const { tape, batch, tokens } = ctx;
  const rows = batch * Math.max(1, tokens - 1);
  const shifted = slice(tape, hidden, rows * description.hiddenSize, false);
  const flat = batch > 1 ? copy(tape, shifted, false) : tape.hold(shifted);
  const sorted = gatherRows(tape, flat, rows);
  for (const tensor of [flat, shifted, hidden]) tape.drop(tensor);
  const chunk = Math.min(CHUNK_ROWS, rows);
  const chunks = Math.min(3, Math.ceil(rows / CHUNK_ROWS));
  const leaf = plan.head.weight?.tensor.node?.leaf;
  if (leaf) leaf.uses += chunks - 1;
  const bodies: (() => Tensor)[] = [];
  const roots: Node[] = [];
  const outer = tape.nodes;
  for (let i = 0; i < chunks; i += 1) {
    const part = slice(tape, sorted, chunk * description.hiddenSize, false);
    const body = (): Tensor => chunkBody(ctx, description, plan, part);
    // Forward: everything of the block ends with it.
    tape.discarding = true;
    tape.nodes = [];
    tape.saves = 0;
    tape.drop(body());
    const saves = tape.saves;
    tape.discarding = false;
    tape.nodes = outer;
    bodies.push(body);
    if (part.node || plan.head.weight?.tensor.node) {
      const root = tape.node(1, F32, () => {
        const previous = tape.nodes;
        const { owner } = tape;
        tape.nodes = [];
        tape.saves = 0;
        tape.stopAt = saves;
        const again = body();
        tape.stopAt = Number.POSITIVE_INFINITY;
        const last = again.node;
        tape.drop(again);
        if (last) last.grad = tape.bytes(0);
        tape.backward(tape.nodes, undefined, true);
        tape.nodes = previous;
        tape.owner = owner;
      });
      if (root) roots.push(root);
    }
    tape.release(part.buffer);
  }
  tape.nodes = outer;
  const kept = sorted.buffer;
  if (roots.length === 0) {
    tape.drop(sorted);
    return null;
  }
  // The blocks' inputs are views of the sorted states: kept until the first block has run backward.
  tape.save(roots[0]!, kept);
  tape.drop(sorted);
  return tape.node(1, F32, () => {
    for (const root of roots) root.grad = tape.bytes(0);
  });
}

/** Parts that torchtune's losses split the tokens into (`num_output_chunks`). */
const LOGITS_CHUNKS = 8;

/**
 * torchtune's CEWithChunkedOutputLoss: the head on one part of the tokens after the other, all logits there before the
 * loss; each part has an fp32 copy for a moment, and its log-probabilities are kept. Source:
 * torchtune/modules/loss/ce_chunked_output_loss.py, modules/transformer.py `chunked_output`.
 */
function chunkedLogitsLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
): LossRoot | null {
  const { tape } = ctx;
  const rows = hidden.elements / description.hiddenSize;
  const chunks = Math.min(LOGITS_CHUNKS, rows);
  const leaf = plan.head.weight?.tensor.node?.leaf;
  if (leaf) leaf.uses += chunks - 1;
  const each = Math.ceil(rows / chunks);
  const sizes = Array.from({ length: chunks }, (_, i) => Math.max(0, Math.min(each, rows - i * each)));
  const states = split(
    tape,
    hidden,
    sizes.map((size) => size * description.hiddenSize),
    false,
  );
  tape.drop(hidden);
  const parts = states.map((part) => {
    const logits = logitsOf(ctx, description, plan, part);
    tape.drop(part);
    return logits;
  });
  const roots = parts.flatMap((logits): Node[] => {
    const wide = cast(tape, logits, F32);
    const { root, kept } = crossEntropy(tape, wide);
    tape.drop(wide);
    tape.drop(kept);
    return root ? [root] : [];
  });
  for (const logits of parts) tape.drop(logits);
  if (roots.length === 0) return null;
  return tape.node(1, F32, () => {
    for (const root of roots) root.grad = tape.bytes(0);
  });
}

/** `_chunk`: product with the weight as it is at every use, fp32 copy, log-softmax, and the entropy that is only logged. */
function chunkBody(ctx: Context, description: ModelDescription, plan: ParameterPlan, part: Tensor): Tensor {
  const { tape, amp } = ctx;
  const head = plan.head.weight!;
  const dtype = amp ?? part.dtype;
  // `w.t()` is a view: autocast does not cache its copy.
  const matched = cast(tape, head.tensor, part.dtype);
  const weight = cast(tape, matched, dtype);
  const input = cast(tape, part, dtype);
  const logits = matmul(tape, input, weight, null, part.elements / description.hiddenSize, description.vocabSize);
  tape.drop(input);
  tape.drop(weight);
  tape.drop(matched);
  let wide = cast(tape, logits, F32);
  tape.drop(logits);
  const steps = [
    ...(plan.head.bias ? [(x: Tensor) => add(tape, x, plan.head.bias!.tensor)] : []),
    ...(description.head.scaled ? [(x: Tensor) => scale(tape, x)] : []),
    ...(description.head.softcap ? [(x: Tensor) => softcap(ctx, x)] : []),
  ];
  for (const step of steps) {
    const next = step(wide);
    tape.drop(wide);
    wide = next;
  }
  const { root, kept } = crossEntropy(tape, wide);
  const logProbabilities = new Tensor(kept.buffer, kept.elements, F32, null);
  const exponent = keepOutput(tape, logProbabilities);
  const entropy = keepOutput(tape, logProbabilities);
  // Its last product saves something too: the recomputation goes on to here.
  tape.saves += 1;
  tape.drop(exponent);
  tape.drop(entropy);
  tape.drop(kept);
  tape.drop(wide);
  return new Tensor(tape.bytes(4), 1, F32, root);
}

/** `h[order]`. */
function gatherRows(tape: Tape, x: Tensor, rows: number): Tensor {
  const parent = x.node;
  const order = tape.bytes(rows * 8);
  const node = parent ? tape.node(x.elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  if (node) tape.save(node, order);
  tape.release(order);
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}

/**
 * Liger's fused linear cross-entropy: gradients are computed in the forward pass, block by block; what stays is the
 * gradient of the hidden states and of a trained head. Source: liger_kernel ops/fused_linear_cross_entropy.py.
 */
function fusedLoss(ctx: Context, description: ModelDescription, plan: ParameterPlan, hidden: Tensor): LossRoot | null {
  const { tape, amp } = ctx;
  const { hiddenSize, vocabSize } = description;
  const rows = hidden.elements / hiddenSize;
  const dtype = amp ?? hidden.dtype;
  const input = cast(tape, hidden, dtype);
  const parts = Math.ceil(vocabSize / hiddenSize);
  const chunk = Math.min(rows, 2 ** Math.ceil(Math.log2(Math.max(1, Math.ceil(rows / parts)))));
  const leaf = plan.head.weight!.tensor.node;
  const toInput = tape.alloc(input.elements, dtype);
  const toWeight = leaf ? tape.alloc(plan.head.weight!.elements, plan.head.weight!.dtype) : null;
  const logits = tape.alloc(chunk * vocabSize, dtype);
  const update = leaf ? tape.alloc(plan.head.weight!.elements, dtype) : null;
  if (update) tape.release(update);
  tape.release(logits);
  const node =
    input.node || leaf
      ? tape.node(1, F32, () => {
          if (toWeight) {
            toWeight.refs += 1;
            tape.give(leaf!, toWeight);
          }
          if (input.node) {
            toInput.refs += 1;
            tape.give(input.node, toInput);
          }
        })
      : null;
  if (node) {
    tape.save(node, toInput);
    if (toWeight) tape.save(node, toWeight);
  }
  tape.release(toInput);
  if (toWeight) tape.release(toWeight);
  tape.drop(input);
  tape.drop(hidden);
  return node;
}
