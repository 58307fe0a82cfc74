import type { ModelDescription, Op } from '../../model/index.ts';
import type { LossImpl } from '../../spec/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import { type Context, type Frame, read } from '../rules/context.ts';
import { runOps } from '../rules/run-ops.ts';
import { cast, copy, slice } from '../tape/primitives.ts';
import { F32, type Tensor } from '../tape/tape.ts';
import { chunkedLogitsLoss, chunkedLoss } from './chunked-loss.ts';
import { crossEntropy, inPlaceLoss, type LossResult, type LossRoot, logitsOf } from './logits.ts';
import { completionLoss, oddsRatioLoss, preferenceLoss } from './preference-loss.ts';
import { smoothedLoss } from './smoothed-loss.ts';

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
  /** The loop's name for the logits outlives the step. */
  readonly named: boolean;
  /** The loss is compiled. */
  readonly compiled: boolean;
  /** The scoring head of a pooled loss. */
  readonly scoring: readonly Op[] | undefined;
  /** Tokens of a row that were generated. */
  readonly completionTokens: number;
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
      return chunkedLogitsLoss(ctx, description, plan, hidden, options.compiled);
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
  const plain = description.form === 'seq2seq' && !description.head.upcast && ctx.amp === undefined;
  const wide = plain ? tape.hold(logits) : cast(tape, logits, F32);
  if (options.rebindsLogits) tape.drop(logits);
  if (options.named) tape.hold(options.rebindsLogits ? wide : logits);
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
