import type { MoeOp } from '../../model/index.ts';
import type { LoopedExperts } from '../parameters.ts';
import { cast, keepOutput, multiply } from '../tape/primitives.ts';
import { F32, Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import type { Context } from './context.ts';
import { gatedProduct } from './fused-kernels.ts';
import { linear } from './linear.ts';

/** Rounds of the loop that are walked; more experts share their rows among these. */
const ROUNDS = 4;

/**
 * Sparse block of transformers before 5 (MixtralSparseMoeBlock and its kin): a Python loop over experts that are modules of their
 * own. Rows are taken as spread evenly: what is kept depends on their sum alone.
 */
export function loopedExperts(ctx: Context, op: MoeOp, state: LoopedExperts, x: Tensor): Tensor {
  const { tape } = ctx;
  const { hiddenSize, intermediateSize } = op;
  const rows = x.elements / hiddenSize;
  const chosen = rows * op.expertsPerToken;
  const logits = linear(ctx, state.router, x, { inFeatures: hiddenSize, outFeatures: op.experts, form: 'linear' });
  const wide = cast(tape, logits, F32);
  const probabilities = keepOutput(tape, wide);
  tape.drop(wide);
  const narrow = cast(tape, take(ctx, probabilities, chosen), x.dtype);
  // Results are added up in place.
  const sum = tape.alloc(x.elements, x.dtype);
  const oneHot = tape.bytes(chosen * op.experts * 8);
  let last = x.node;
  const rounds = Math.min(ROUNDS, op.experts);
  let previous: Tensor[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const share = chosen / rounds;
    const input = take(ctx, x, share * hiddenSize);
    const gate = linear(ctx, state.gate, input, {
      inFeatures: hiddenSize,
      outFeatures: intermediateSize,
      form: 'linear',
    });
    let product: Tensor;
    const up = (): Tensor =>
      linear(ctx, state.up, input, { inFeatures: hiddenSize, outFeatures: intermediateSize, form: 'linear' });
    if (ctx.fused.includes('gate')) {
      const other = up();
      product = gatedProduct(tape, gate, other);
      tape.drop(gate);
      tape.drop(other);
    } else {
      const activated = activate(ctx, op.activation, gate);
      tape.drop(gate);
      const other = up();
      product = multiply(tape, activated, other);
      tape.drop(activated);
      tape.drop(other);
    }
    const down = linear(ctx, state.down, product, {
      inFeatures: intermediateSize,
      outFeatures: hiddenSize,
      form: 'linear',
    });
    tape.drop(product);
    const weights = take(ctx, narrow, share);
    const weighted = multiply(tape, down, weights);
    tape.drop(weights);
    tape.drop(down);
    // Names of one round last until the next binds them again.
    for (const tensor of previous) tape.drop(tensor);
    previous = [input, weighted];
    last = chain(ctx, x, last, weighted);
  }
  for (const tensor of previous) tape.drop(tensor);
  for (const buffer of [oneHot]) tape.release(buffer);
  for (const tensor of [narrow, probabilities, logits]) tape.drop(tensor);
  return new Tensor(sum, x.elements, x.dtype, last === x.node && !x.node ? null : last);
}

/** `x[index]`: the gradient is put into zeros of x's size. */
function take(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const index = tape.bytes(8);
  const node = parent ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  if (node) tape.save(node, index);
  tape.release(index);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** `index_add_` onto the sum: its gradient passes through, and is picked for the round's rows. */
function chain(ctx: Context, x: Tensor, last: Tensor['node'], weighted: Tensor): Tensor['node'] {
  const { tape } = ctx;
  const target = weighted.node;
  if (!target) return last;
  const through = last === x.node ? null : last;
  return tape.node(x.elements, x.dtype, (grad) => {
    tape.give(target, tape.alloc(weighted.elements, weighted.dtype));
    if (through) {
      grad.refs += 1;
      tape.give(through, grad);
    }
  });
}
