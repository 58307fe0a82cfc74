import type { ModelDescription } from '../../model/index.ts';
import type { ParameterPlan } from '../parameters.ts';
import type { Context } from '../rules/context.ts';
import { cast, copy, keepOutput, scale, slice } from '../tape/primitives.ts';
import { F32, type Tape, type Tensor } from '../tape/tape.ts';
import { entropy, selectiveLogSoftmax } from './log-probabilities.ts';
import { type LossResult, type LossRoot, logitsOf } from './logits.ts';

/**
 * DPO and KTO: log-probabilities of every row. The logits stay named to the end of the loss, the reference model runs in
 * between, and what is logged is computed on copies of them. Source: trl 1.13 dpo_trainer.py, kto_trainer.py `_compute_loss`.
 */
export function preferenceLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
  form: 'pairs' | 'singles' | 'reference',
): LossResult {
  const { tape, batch, tokens } = ctx;
  const { vocabSize } = description;
  const logits = logitsOf(ctx, description, plan, hidden);
  tape.drop(hidden);
  const shifted = slice(tape, logits, batch * Math.max(1, tokens - 1) * vocabSize, false);
  const chosen = selectiveLogSoftmax(ctx, shifted, batch, vocabSize);
  const root = rootOf(tape, [chosen]);
  tape.drop(chosen);
  return {
    root,
    finish: () => {
      if (form !== 'reference') {
        entropy(ctx, shifted, vocabSize, batch > 1);
        // KTO copies the rows of both kinds out, DPO takes views; the masked tokens of half the rows are copied by both.
        const kinds = form === 'singles' ? tape.alloc(shifted.elements, shifted.dtype) : undefined;
        tape.release(tape.alloc(Math.ceil(shifted.elements / 2), shifted.dtype));
        if (kinds) tape.release(kinds);
      }
      tape.drop(shifted);
      tape.drop(logits);
    },
  };
}

/**
 * ORPO: cross-entropy of the chosen half beside the log-probabilities of all rows. Source: trl 1.13
 * experimental/orpo/orpo_trainer.py `concatenated_forward`.
 */
export function oddsRatioLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
): LossResult {
  const { tape, amp, batch, tokens } = ctx;
  const { vocabSize } = description;
  const logits = logitsOf(ctx, description, plan, hidden);
  tape.drop(hidden);
  const rows = Math.max(1, batch / 2);
  const half = slice(tape, logits, rows * tokens * vocabSize, false);
  const part = slice(tape, half, rows * Math.max(1, tokens - 1) * vocabSize, false);
  const flat = rows > 1 ? copy(tape, part, false) : tape.hold(part);
  const wide = cast(tape, flat, amp === undefined ? flat.dtype : F32);
  const kept = keepOutput(tape, wide);
  const target = kept.node;
  const nll = target ? tape.node(1, F32, () => tape.give(target, tape.alloc(kept.elements, kept.dtype))) : null;
  if (nll) tape.save(nll, kept.buffer);
  for (const tensor of [kept, wide, flat, part, half]) tape.drop(tensor);

  const shifted = slice(tape, logits, batch * Math.max(1, tokens - 1) * vocabSize, false);
  const chosen = selectiveLogSoftmax(ctx, shifted, batch, vocabSize);
  const odds = rootOf(tape, [chosen]);
  tape.drop(chosen);
  const root =
    nll || odds
      ? tape.node(1, F32, () => {
          for (const part of [nll, odds]) if (part) part.grad = tape.bytes(4);
        })
      : null;
  return {
    root,
    finish: () => {
      tape.drop(shifted);
      tape.drop(logits);
    },
  };
}

/**
 * GRPO and RLOO: the logits of the completion alone, divided by the temperature, and the log-probabilities of its tokens.
 * Source: trl 1.13 grpo_trainer.py `_get_per_token_logps_and_entropies`.
 */
export function completionLoss(
  ctx: Context,
  description: ModelDescription,
  plan: ParameterPlan,
  hidden: Tensor,
  completionTokens: number,
): LossResult {
  const { tape, batch, tokens } = ctx;
  const { vocabSize, hiddenSize } = description;
  const kept = Math.min(tokens, completionTokens + 1);
  const tail = slice(tape, hidden, batch * kept * hiddenSize, false);
  const rows = batch > 1 && kept < tokens ? copy(tape, tail, false) : tape.hold(tail);
  const logits = logitsOf(ctx, description, plan, rows);
  for (const tensor of [rows, tail, hidden]) tape.drop(tensor);
  const elements = batch * Math.max(1, kept - 1) * vocabSize;
  const shifted = slice(tape, logits, elements, false);
  const whole = slice(tape, shifted, elements, false);
  const tempered = scale(tape, whole);
  for (const tensor of [whole, shifted]) tape.drop(tensor);
  const chosen = selectiveLogSoftmax(ctx, tempered, batch, vocabSize);
  entropy(ctx, tempered, vocabSize, false);
  tape.drop(tempered);
  tape.drop(logits);
  const root = rootOf(tape, [chosen]);
  tape.drop(chosen);
  return { root };
}

function rootOf(tape: Tape, parts: readonly Tensor[]): LossRoot | null {
  const targets = parts.filter((part) => part.node);
  if (targets.length === 0) return null;
  return tape.node(1, F32, () => {
    for (const part of targets) tape.give(part.node!, tape.alloc(part.elements, part.dtype));
  });
}
