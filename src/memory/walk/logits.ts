import type { ModelDescription } from '../../model/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import { type Context, type Frame, read } from '../rules/context.ts';
import { linear } from '../rules/linear.ts';
import { runOps, softcap } from '../rules/run-ops.ts';
import { share } from '../tape/gradients.ts';
import { cast, keepOutput, offset, scale } from '../tape/primitives.ts';
import { F32, type Node, type Tape, type Tensor } from '../tape/tape.ts';

/** The loss's root: its backward starts everything. */
export type LossRoot = Node;

export interface LossResult {
  /** The node that the backward pass starts from; null without gradients. */
  readonly root: LossRoot | null;
  /** What is left of the loss once a reference model has run. */
  readonly finish?: () => void;
}

/** The head on these hidden states. */
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

/** log_softmax keeps its result; nll_loss makes a gradient of the same size. */
export function crossEntropy(tape: Tape, wide: Tensor): { root: LossRoot | null; kept: Tensor } {
  const kept = keepOutput(tape, wide);
  const target = kept.node;
  if (!target) return { root: null, kept };
  const root = tape.node(1, F32, () => tape.give(target, tape.alloc(wide.elements, wide.dtype)));
  tape.save(root, kept.buffer);
  return { root, kept };
}

/** One kernel over the logits: they are kept and hold their own gradient afterwards. */
export function inPlaceLoss(tape: Tape, logits: Tensor): { root: LossRoot | null; kept: Tensor } {
  const kept = tape.hold(logits);
  const target = logits.node;
  if (!target) return { root: null, kept };
  const root = tape.node(1, F32, () => tape.give(target, share(logits.buffer)));
  tape.save(root, logits.buffer);
  return { root, kept };
}
