import type { MoeOp } from '../../model/index.ts';
import type { MoeState, StackedWeight } from '../parameters.ts';
import { cast, keepOutput, matmul, multiply, split } from '../tape/primitives.ts';
import { F32, type Node, Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import type { Context } from './context.ts';

/**
 * Sparse block as transformers 5 runs it (integrations/moe.py, grouped_mm): the router chooses, the tokens are sorted by
 * expert, two grouped products, the results are weighted, put back in order and summed over the chosen experts.
 */
export function moe(ctx: Context, op: MoeOp, state: MoeState, x: Tensor): Tensor {
  const { tape } = ctx;
  const rows = x.elements / op.hiddenSize;
  const chosen = rows * op.expertsPerToken;
  const { weights, indices } = route(ctx, op, state.router, x, rows);

  const down3 = foldFactors(ctx, state.down);
  const gateUp3 = foldFactors(ctx, state.gateUp);
  const order = tape.bytes(chosen * 8);
  const permutation = tape.bytes(chosen * 8);
  const tokenOfRow = tape.bytes(chosen * 8);
  const selected = gather(ctx, x, chosen * op.hiddenSize, tokenOfRow);
  tape.release(tokenOfRow);
  const rowWeights = gather(ctx, weights, chosen, permutation);
  const sentinels = tape.bytes(chosen);
  const masked = maskedFill(ctx, selected, sentinels, true);

  const up = grouped(ctx, masked, gateUp3, chosen * 2 * op.intermediateSize);
  const filled = maskedFill(ctx, up, sentinels, false);
  tape.drop(up);
  const [gate, linear] = split(tape, filled, [chosen * op.intermediateSize, chosen * op.intermediateSize], false);
  const activated = activate(ctx, op.activation, gate!);
  const product = multiply(tape, activated, linear!);
  for (const tensor of [activated, gate!, linear!, filled]) tape.drop(tensor);

  const down = grouped(ctx, product, down3, chosen * op.hiddenSize);
  tape.drop(product);
  const filledDown = maskedFill(ctx, down, sentinels, false);
  tape.drop(down);
  const weighted = multiply(tape, filledDown, rowWeights);
  const inverse = tape.bytes(chosen * 8);
  const restored = gather(ctx, weighted, chosen * op.hiddenSize, inverse);
  tape.drop(weighted);
  const summed = sumChosen(ctx, restored, rows * op.hiddenSize);
  for (const tensor of [restored, filledDown, masked, selected, rowWeights]) tape.drop(tensor);
  gateUp3.end();
  down3.end();
  for (const buffer of [inverse, sentinels, permutation, order, indices]) tape.release(buffer);
  tape.drop(weights);
  const out = cast(tape, summed, x.dtype);
  tape.drop(summed);
  return out;
}

function route(ctx: Context, op: MoeOp, router: StackedWeight, x: Tensor, rows: number) {
  const { tape } = ctx;
  const shape = { inFeatures: op.hiddenSize, outFeatures: op.experts, form: 'linear' } as const;
  const weight = foldFactors(ctx, router);
  const folded = weight.get();
  const logits = multiplyBy(ctx, folded, x, shape);
  tape.drop(folded);
  weight.end();
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

/** `x[index]`: the gradient is put into zeros of x's size, which makes two tensors of it for a moment. */
function gather(ctx: Context, x: Tensor, elements: number, index: Tensor['buffer']): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent
    ? tape.node(elements, x.dtype, () => {
        const zeros = tape.alloc(x.elements, x.dtype);
        const filled = tape.alloc(x.elements, x.dtype);
        tape.release(zeros);
        tape.give(parent, filled);
      })
    : null;
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

/** The weight as the experts see it while PEFT's wrapper is active. */
interface FoldedWeight {
  /** One more name for it; made when first asked for. */
  readonly get: () => Tensor;
  /** Leaving the wrapper. */
  readonly end: () => void;
}

/**
 * PEFT's lora.ParamWrapper: `baddbmm(W, lhs, rhs)` makes a tensor of the whole weight's size, once when the wrapper is
 * entered (thrown away) and once when the weight is used; its gradient is of that size too.
 */
function foldFactors(ctx: Context, { weight, lora }: StackedWeight): FoldedWeight {
  const { tape } = ctx;
  if (!lora || ctx.frozen) return { get: () => tape.hold(weight.tensor), end: () => {} };
  const lhs = cast(tape, lora.b.tensor, weight.dtype);
  const rhs = cast(tape, lora.a.tensor, weight.dtype);
  tape.release(tape.alloc(weight.elements, weight.dtype));
  let folded: Tensor | undefined;
  const fold = (): Tensor => {
    const node = tape.node(weight.elements, weight.dtype, () => {
      for (const factor of [lhs, rhs]) {
        const product = tape.alloc(factor.elements, factor.dtype);
        const scaled = tape.alloc(factor.elements, factor.dtype);
        tape.release(product);
        tape.give(factor.node!, scaled);
      }
    });
    tape.save(node, lhs.buffer);
    tape.save(node, rhs.buffer);
    return new Tensor(tape.alloc(weight.elements, weight.dtype), weight.elements, weight.dtype, node);
  };
  return {
    get: () => {
      folded ??= fold();
      return tape.hold(folded);
    },
    end: () => {
      if (folded) tape.drop(folded);
      tape.drop(lhs);
      tape.drop(rhs);
    },
  };
}

function multiplyBy(
  ctx: Context,
  weight: Tensor,
  x: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): Tensor {
  const { tape, amp } = ctx;
  const dtype = amp ?? weight.dtype;
  const factor = cast(tape, weight, dtype);
  const input = cast(tape, x, dtype);
  const out = matmul(tape, input, factor, null, x.elements / shape.inFeatures, shape.outFeatures);
  tape.drop(input);
  tape.drop(factor);
  return out;
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
