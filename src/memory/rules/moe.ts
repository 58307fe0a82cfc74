import type { MoeOp } from '../../model/index.ts';
import type { OpState, Parameter } from '../parameters.ts';
import { cast, keepOutput, multiply, split } from '../tape/primitives.ts';
import { F32, type Node, Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import type { Context } from './context.ts';
import { plainLinear } from './linear.ts';

/**
 * Sparse block as transformers 5 runs it (integrations/moe.py, grouped_mm): the router chooses, the tokens are sorted by
 * expert, two grouped products, the results are weighted, put back in order and summed over the chosen experts.
 */
export function moe(ctx: Context, op: MoeOp, state: NonNullable<OpState['moe']>, x: Tensor): Tensor {
  const { tape } = ctx;
  const rows = x.elements / op.hiddenSize;
  const chosen = rows * op.expertsPerToken;
  const { weights, indices } = route(ctx, op, state.router, x, rows);

  const order = tape.bytes(chosen * 8);
  const permutation = tape.bytes(chosen * 8);
  const tokenOfRow = tape.bytes(chosen * 8);
  const selected = gather(ctx, x, chosen * op.hiddenSize, tokenOfRow);
  tape.release(tokenOfRow);
  const rowWeights = gather(ctx, weights, chosen, permutation);
  const sentinels = tape.bytes(chosen);
  const masked = maskedFill(ctx, selected, sentinels, true);

  const up = grouped(ctx, masked, state.gateUp, chosen * 2 * op.intermediateSize);
  const filled = maskedFill(ctx, up, sentinels, false);
  tape.drop(up);
  const [gate, linear] = split(tape, filled, [chosen * op.intermediateSize, chosen * op.intermediateSize]);
  const activated = activate(tape, op.activation, gate!);
  const product = multiply(tape, activated, linear!);
  for (const tensor of [activated, gate!, linear!, filled]) tape.drop(tensor);

  const down = grouped(ctx, product, state.down, chosen * op.hiddenSize);
  tape.drop(product);
  const filledDown = maskedFill(ctx, down, sentinels, false);
  tape.drop(down);
  const weighted = multiply(tape, filledDown, rowWeights);
  const inverse = tape.bytes(chosen * 8);
  const restored = gather(ctx, weighted, chosen * op.hiddenSize, inverse);
  tape.drop(weighted);
  const summed = sumChosen(ctx, restored, rows * op.hiddenSize);
  for (const tensor of [restored, filledDown, masked, selected, rowWeights]) tape.drop(tensor);
  for (const buffer of [inverse, sentinels, permutation, order, indices]) tape.release(buffer);
  tape.drop(weights);
  const out = cast(tape, summed, x.dtype);
  tape.drop(summed);
  return out;
}

function route(ctx: Context, op: MoeOp, router: Parameter, x: Tensor, rows: number) {
  const { tape } = ctx;
  const logits = plainLinear(ctx, { weight: router, bias: undefined }, x, {
    inFeatures: op.hiddenSize,
    outFeatures: op.experts,
    form: 'linear',
  });
  const wide = cast(tape, logits, F32);
  const probabilities = keepOutput(tape, wide);
  tape.drop(wide);
  const indices = tape.bytes(rows * op.expertsPerToken * 8);
  let weights = gather(ctx, probabilities, rows * op.expertsPerToken, indices);
  if (op.normalise) {
    const sum = tape.alloc(rows, F32);
    const divided = multiply(tape, weights, new Tensor(sum, rows, F32, weights.node));
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
  tape.drop(logits);
  return { weights, indices };
}

/** `x[index]`: the gradient is zeros of x's size, filled in place. */
function gather(ctx: Context, x: Tensor, elements: number, index: Tensor['buffer']): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  if (node) tape.save(node, index);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** masked_fill: its gradient is a copy with zeros; in place it shares the values. */
function maskedFill(ctx: Context, x: Tensor, mask: Tensor['buffer'], inPlace: boolean): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent ? tape.node(x.elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  if (node) tape.save(node, mask);
  if (inPlace) x.buffer.refs += 1;
  return new Tensor(inPlace ? x.buffer : tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}

/** grouped_mm is not on autocast's list: the input takes the weight's dtype. */
function grouped(ctx: Context, x: Tensor, weight: Parameter, elements: number): Tensor {
  const { tape } = ctx;
  const input = cast(tape, x, weight.dtype);
  const leaf = weight.tensor.node;
  let node: Node | null = null;
  if (input.node || leaf) {
    node = tape.node(elements, weight.dtype, () => {
      const toInput = input.node ? tape.alloc(input.elements, weight.dtype) : null;
      const toWeight = leaf ? tape.alloc(weight.elements, weight.dtype) : null;
      if (toWeight) tape.give(leaf!, toWeight);
      if (toInput) tape.give(input.node!, toInput);
    });
    if (leaf) tape.save(node, input.buffer);
    if (input.node) tape.save(node, null);
  }
  const out = new Tensor(tape.alloc(elements, weight.dtype), elements, weight.dtype, node);
  tape.drop(input);
  return out;
}

/** Sum over the chosen experts: the gradient is a view, expanded where it is used. */
function sumChosen(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent
    ? tape.node(elements, x.dtype, (grad) => {
        grad.refs += 1;
        tape.give(parent, grad);
      })
    : null;
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}
