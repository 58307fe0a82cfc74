import type { MoeOp } from '../../model/index.ts';
import type { MoeState } from '../parameters.ts';
import { add, cast, keepInput, keepOutput, multiply, offset, scale, slice, split } from '../tape/primitives.ts';
import { type Node, Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import type { Context } from './context.ts';
import { route } from './route.ts';
import { type FoldedWeight, foldFactors, gather } from './stacked.ts';

/**
 * Sparse block as transformers 5 runs it (integrations/moe.py, grouped_mm): the router chooses, the tokens are sorted by
 * expert, two grouped products, the results are weighted, put back in order and summed over the chosen experts.
 */
export function moe(ctx: Context, op: MoeOp, state: MoeState, x: Tensor, logits?: Tensor): Tensor {
  const { tape } = ctx;
  const rows = x.elements / op.hiddenSize;
  const chosen = rows * op.expertsPerToken;
  const { weights, indices } = route(ctx, op, state, x, logits);

  const down3 = foldFactors(ctx, state.down);
  const gateUp3 = foldFactors(ctx, state.gateUp);
  const order = tape.bytes(chosen * 8);
  const permutation = tape.bytes(chosen * 8);
  const tokenOfRow = tape.bytes(chosen * 8);
  const selected = gather(ctx, x, chosen * op.hiddenSize, tokenOfRow);
  tape.release(tokenOfRow);
  const rowWeights = gather(ctx, weights, chosen, permutation);
  const sentinels = tape.bytes(chosen);
  const width = op.ungated ? op.intermediateSize : 2 * op.intermediateSize;
  let rowBiases = state.biases ? gather(ctx, state.biases.gateUp.tensor, chosen * width, order) : undefined;
  const masked = maskedFill(ctx, selected, sentinels, true);

  const up = addBias(ctx, grouped(ctx, masked, gateUp3, chosen * width), rowBiases);
  const filled = maskedFill(ctx, up, sentinels, false);
  tape.drop(up);
  const product = gated(ctx, op, filled, chosen);

  if (rowBiases) {
    const next = gather(ctx, state.biases!.down.tensor, chosen * op.hiddenSize, order);
    tape.drop(rowBiases);
    rowBiases = next;
  }
  const down = addBias(ctx, grouped(ctx, product, down3, chosen * op.hiddenSize), rowBiases);
  tape.drop(product);
  const filledDown = maskedFill(ctx, down, sentinels, false);
  tape.drop(down);
  const weighted = multiply(tape, filledDown, rowWeights);
  const inverse = tape.bytes(chosen * 8);
  const restored = gather(ctx, weighted, chosen * op.hiddenSize, inverse);
  tape.drop(weighted);
  const summed = sumChosen(ctx, restored, rows * op.hiddenSize);
  const out = cast(tape, summed, x.dtype);
  tape.drop(summed);
  for (const tensor of [restored, filledDown, masked, selected, rowWeights]) tape.drop(tensor);
  if (rowBiases) tape.drop(rowBiases);
  gateUp3.end();
  down3.end();
  for (const buffer of [inverse, sentinels, permutation, order, indices]) tape.release(buffer);
  tape.drop(weights);
  return out;
}

/** `out.add_(bias)`. */
function addBias(ctx: Context, out: Tensor, bias: Tensor | undefined): Tensor {
  if (!bias) return out;
  const sum = add(ctx.tape, out, bias, true);
  ctx.tape.drop(out);
  return sum;
}

/** Activation and gate on the first projection's result, which it takes over. */
function gated(ctx: Context, op: MoeOp, both: Tensor, chosen: number): Tensor {
  const { tape } = ctx;
  if (op.ungated) {
    const activated = activate(ctx, op.activation, both);
    tape.drop(both);
    return activated;
  }
  const size = chosen * op.intermediateSize;
  if (op.biased) return clampedGate(ctx, both, size);
  const [gate, linear] = split(tape, both, [size, size], false);
  const activated = activate(ctx, op.activation, gate!);
  const product = multiply(tape, activated, linear!);
  for (const tensor of [activated, gate!, linear!, both]) tape.drop(tensor);
  return product;
}

/** gpt-oss: every second feature is the gate, both are clamped: `(up + 1) * (gate * sigmoid(gate * alpha))`. */
function clampedGate(ctx: Context, both: Tensor, size: number): Tensor {
  const { tape } = ctx;
  const [gateView, upView] = [slice(tape, both, size, false), slice(tape, both, size, false)];
  const gate = keepInput(tape, gateView);
  tape.drop(gateView);
  const up = keepInput(tape, upView);
  tape.drop(upView);
  const scaled = scale(tape, gate);
  const bent = keepOutput(tape, scaled);
  tape.drop(scaled);
  const glu = multiply(tape, gate, bent);
  tape.drop(bent);
  const shifted = offset(tape, up);
  const product = multiply(tape, shifted, glu);
  for (const tensor of [shifted, glu, up, gate, both]) tape.drop(tensor);
  return product;
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
function grouped(ctx: Context, x: Tensor, folded: FoldedWeight, elements: number): Tensor {
  const { tape } = ctx;
  const weight = folded.get();
  const { dtype } = weight;
  const input = cast(tape, x, dtype);
  let node: Node | null = null;
  if (input.node || weight.node) {
    node = tape.node(elements, dtype, () => {
      const toWeight = weight.node ? tape.alloc(weight.elements, dtype) : null;
      const toInput = input.node ? tape.alloc(input.elements, dtype) : null;
      if (toWeight) tape.give(weight.node!, toWeight);
      if (toInput) tape.give(input.node!, toInput);
    });
    if (weight.node) tape.save(node, input.buffer);
    if (input.node) tape.save(node, weight.buffer);
  }
  const out = new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
  tape.drop(input);
  tape.drop(weight);
  return out;
}

/** Sum over the chosen experts: the gradient is expanded and then made real to be put back in order. */
function sumChosen(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}
