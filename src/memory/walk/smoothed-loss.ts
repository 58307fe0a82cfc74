import type { ModelDescription } from '../../model/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import type { Context } from '../rules/context.ts';
import { cast, copy, giveAs, keepOutput, scale, slice } from '../tape/primitives.ts';
import { F32, type Tape, Tensor } from '../tape/tape.ts';
import { gather } from './log-probabilities.ts';
import { type LossResult, logitsOf } from './logits.ts';

/**
 * With label smoothing the Trainer takes the labels away from the model and computes the loss itself: a contiguous copy of
 * the shifted logits, their log-softmax and its negative. Source: transformers 5.17 trainer_pt_utils.py LabelSmoother.
 */
export function smoothedLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
): LossResult {
  const { tape, amp, batch, tokens } = ctx;
  const { vocabSize } = description;
  const logits = logitsOf(ctx, description, plan, hidden);
  tape.drop(hidden);
  const rows = batch * Math.max(1, tokens - 1);
  const view = slice(tape, logits, rows * vocabSize, false);
  const flat = batch > 1 ? copy(tape, view, false) : tape.hold(view);
  const wide = cast(tape, flat, amp === undefined ? flat.dtype : F32);
  const logProbabilities = keepOutput(tape, wide);
  const negative = scale(tape, logProbabilities);
  tape.drop(logProbabilities);
  const picked = gather(tape, negative, rows);
  const summed = sum(tape, negative, rows);
  const parts = [picked, summed];
  const root = picked.node
    ? tape.node(1, F32, () => {
        for (const part of parts) tape.give(part.node!, tape.alloc(part.elements, part.dtype));
      })
    : null;
  for (const tensor of [...parts, negative, wide, flat, view, logits]) tape.drop(tensor);
  return { root };
}

/** `sum(-1, dtype=float32)`: the gradient is a view of the row's number until it has to take the input's dtype. */
function sum(tape: Tape, x: Tensor, rows: number): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(rows, F32, () => {
        if (x.dtype === F32) giveAs(tape, x, tape.bytes(0), x.elements, F32);
        else tape.give(parent, tape.alloc(x.elements, x.dtype));
      })
    : null;
  return new Tensor(tape.alloc(rows, F32), rows, F32, node);
}
