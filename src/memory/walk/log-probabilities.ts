import type { Context } from '../rules/context.ts';
import { cast, keepOutput, split } from '../tape/primitives.ts';
import { F32, type Tape, Tensor } from '../tape/tape.ts';

/**
 * TRL's selective_log_softmax: the log-probability of one label a token, row by row. 16-bit logits (and any under autocast,
 * which has log_softmax on its fp32 list) keep a log-softmax of every row; fp32 logits are kept themselves. Does not take
 * over `logits`. Source: trl 1.13 trainer/utils.py.
 */
export function selectiveLogSoftmax(ctx: Context, logits: Tensor, rows: number, vocabSize: number): Tensor {
  const { tape } = ctx;
  const tokens = logits.elements / vocabSize;
  return logits.dtype === F32
    ? byLogSumExp(tape, logits, rows, tokens)
    : byLogSoftmax(ctx, logits, rows, tokens / rows);
}

function byLogSoftmax(ctx: Context, logits: Tensor, rows: number, tokens: number): Tensor {
  const { tape, amp } = ctx;
  const parts = unbind(tape, logits, rows);
  const chosen: Tensor[] = [];
  let last: Tensor | undefined;
  for (const part of parts) {
    const wide = cast(tape, part, amp === undefined ? part.dtype : F32);
    const row = keepOutput(tape, wide);
    tape.drop(wide);
    chosen.push(gather(tape, row, tokens));
    if (last) tape.drop(last);
    last = row;
  }
  const out = stack(tape, chosen);
  if (last) tape.drop(last);
  for (const tensor of [...parts, ...chosen]) tape.drop(tensor);
  return out;
}

function byLogSumExp(tape: Tape, logits: Tensor, rows: number, tokens: number): Tensor {
  const chosen = gather(tape, logits, tokens);
  const parts = unbind(tape, logits, rows);
  const sums = parts.map((part) => logSumExp(tape, part, tokens / rows));
  const joined = stack(tape, sums);
  const inputs = [chosen, joined];
  const node = chosen.node
    ? tape.node(tokens, F32, () => {
        for (const input of inputs) if (input.node) tape.give(input.node, tape.alloc(tokens, F32));
      })
    : null;
  for (const tensor of [...parts, ...sums, ...inputs]) tape.drop(tensor);
  return new Tensor(tape.alloc(tokens, F32), tokens, F32, node);
}

/** Iterating over a tensor: views whose gradients are stacked once all are there. */
const unbind = (tape: Tape, x: Tensor, rows: number): Tensor[] =>
  split(tape, x, new Array<number>(rows).fill(x.elements / rows), false);

/** Input and result are kept; the gradient takes three tensors of the input's size. */
function logSumExp(tape: Tape, x: Tensor, tokens: number): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(tokens, x.dtype, () => {
        const [difference, exponent, result] = [0, 1, 2].map(() => tape.alloc(x.elements, x.dtype));
        tape.release(difference!);
        tape.release(exponent!);
        tape.give(parent, result!);
      })
    : null;
  tape.save(node, x.buffer);
  return new Tensor(tape.alloc(tokens, x.dtype), tokens, x.dtype, node);
}

/** One element a token: its input is kept; the gradient is zeros of that size, and a copy with it put in. */
export function gather(tape: Tape, x: Tensor, tokens: number): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(tokens, x.dtype, () => {
        const zeros = tape.alloc(x.elements, x.dtype);
        const filled = tape.alloc(x.elements, x.dtype);
        tape.release(zeros);
        tape.give(parent, filled);
      })
    : null;
  tape.save(node, x.buffer);
  return new Tensor(tape.alloc(tokens, x.dtype), tokens, x.dtype, node);
}

function stack(tape: Tape, parts: readonly Tensor[]): Tensor {
  const elements = parts.reduce((total, part) => total + part.elements, 0);
  const { dtype } = parts[0]!;
  const node = parts.some((part) => part.node)
    ? tape.node(elements, dtype, () => {
        for (const part of parts) if (part.node) tape.give(part.node, tape.alloc(part.elements, dtype));
      })
    : null;
  return new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
}

/** Rows that entropy_from_logits takes at a time. */
const ENTROPY_ROWS = 128;

/**
 * TRL's entropy_from_logits, only logged: a contiguous copy of the logits where they are a part of more rows than one, and
 * log-probabilities, their exponents and the product of one block.
 */
export function entropy(ctx: Context, logits: Tensor, vocabSize: number, copies: boolean): void {
  const { tape, amp } = ctx;
  const flat = copies ? tape.alloc(logits.elements, logits.dtype) : undefined;
  const block = Math.min(ENTROPY_ROWS * vocabSize, logits.elements);
  const dtype = amp === undefined ? logits.dtype : F32;
  const blocks = [0, 1, 2].map(() => tape.alloc(block, dtype));
  for (const buffer of blocks) tape.release(buffer);
  if (flat) tape.release(flat);
}
