import type { LinearOp, Op } from '../../model/index.ts';
import type { Adapter, LinearState, Parameter } from '../parameters.ts';
import { add, cast, copy, dropout, scale, split, viewHeads } from '../tape/primitives.ts';
import { type Node, Tensor } from '../tape/tape.ts';
import { type Context, weightFor } from './context.ts';
import { quantisedLinear } from './quantised-linear.ts';

/** What makes query, key and value of a block that attends. */
export interface Projections {
  /** Three of one input, or one that is all of them already. */
  readonly ops: readonly LinearOp[];
  /** Several query heads share keys and values. */
  readonly grouped: boolean;
  /** Features of the query and of the value. */
  readonly trained: readonly [number, number];
}

export function projectionsOf(ops: readonly Op[]): Projections | undefined {
  const end = ops.findIndex(({ op }) => op === 'attention');
  const attention = ops[end];
  if (attention?.op !== 'attention') return undefined;
  const early = ops.slice(0, end).filter((op): op is LinearOp => op.op === 'linear');
  if (early.length !== 1 && (early.length !== 3 || early.some(({ input }) => input !== early[0]!.input)))
    return undefined;
  const { heads, kvHeads, headDim } = attention;
  return { ops: early, grouped: heads > kvHeads, trained: [heads * headDim, kvHeads * headDim] };
}

/**
 * One product for query, key and value, of which they are views: as long as one of them is kept, all are. Grouped queries
 * are copied out of it. LoRA is one function too: the input is dropped out once, and an update that leaves one of the three
 * out is put into zeros of their width (`index_copy`, which keeps what it puts there).
 * Source: litgpt/lora.py `LoRAQKVLinear`, litgpt/model.py `CausalSelfAttention`.
 */
export function joinedProjections(ctx: Context, { ops, grouped, trained }: Projections, x: Tensor): Tensor[] {
  const { tape } = ctx;
  const states = ops.map((op) => ctx.states.get(op)!.linear!);
  const { inFeatures } = ops[0]!;
  const widths = ops.map(({ outFeatures }) => outFeatures);
  const rows = x.elements / inFeatures;
  const plain = joinedBase(ctx, states, x, inFeatures, sumOf(widths));
  const whole = ctx.frozen ? plain : joinedLora(ctx, states, widths, trained, x, plain, rows);
  if (ops.length === 1) return [whole];
  const heads = viewHeads(tape, whole);
  tape.drop(whole);
  const parts = split(
    tape,
    heads,
    widths.map((width) => rows * width),
    true,
  );
  tape.drop(heads);
  if (!grouped) return parts;
  const [query, ...others] = parts as [Tensor, ...Tensor[]];
  const copied = copy(tape, query, true);
  tape.drop(query);
  return [copied, ...others];
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

function joinedBase(
  ctx: Context,
  states: readonly LinearState[],
  x: Tensor,
  inFeatures: number,
  outFeatures: number,
): Tensor {
  const [first] = states as [LinearState, ...LinearState[]];
  if (first.quantised) {
    const elements = inFeatures * outFeatures;
    return quantisedLinear(ctx, { ...first.quantised, elements }, first.bias, x, { inFeatures, outFeatures });
  }
  const weights = states.flatMap(({ weight, bias }) => [weight!, ...(bias ? [bias] : [])]);
  return product(ctx, x, weights, (x.elements / inFeatures) * outFeatures);
}

type Lora = Extract<Adapter, { kind: 'lora' | 'dora' }>;

/** Takes over `result`. */
function joinedLora(
  ctx: Context,
  states: readonly LinearState[],
  widths: readonly number[],
  trained: Projections['trained'],
  x: Tensor,
  result: Tensor,
  rows: number,
): Tensor {
  const { tape } = ctx;
  const adapters = states.flatMap(({ adapter }, index) =>
    adapter && adapter.kind !== 'ia3' ? [{ adapter, width: widths[index]! }] : [],
  );
  if (adapters.length === 0) return result;
  const factors = (of: (adapter: Lora) => Parameter): Parameter[] => adapters.map(({ adapter }) => of(adapter));
  const dropped = dropout(tape, x, adapters[0]!.adapter.dropout);
  const rank = sumOf(adapters.map(({ adapter }) => adapter.a.rows));
  const down = product(
    ctx,
    dropped,
    factors(({ a }) => a),
    rows * rank,
  );
  tape.drop(dropped);
  // Of one that is all of them, query and value are trained unless more is asked for.
  const updated = states.length === 1 ? sumOf(trained) : sumOf(adapters.map(({ width }) => width));
  const up = product(
    ctx,
    down,
    factors(({ b }) => b),
    rows * updated,
  );
  tape.drop(down);
  const update = updated < sumOf(widths) ? padded(ctx, up, rows * sumOf(widths)) : tape.hold(up);
  tape.drop(up);
  const scaled = scale(tape, update);
  tape.drop(update);
  const out = add(tape, result, scaled);
  tape.drop(scaled);
  tape.drop(result);
  return out;
}

function padded(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  tape.save(node, x.buffer);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** One product with several parameters side by side. */
function product(ctx: Context, x: Tensor, parameters: readonly Parameter[], elements: number): Tensor {
  const { tape, amp } = ctx;
  const weights = parameters.map((parameter) => weightFor(ctx, parameter));
  const input = cast(tape, x, amp ?? weights[0]!.dtype);
  const { dtype } = input;
  const trained = weights.filter(({ node }) => node);
  let node: Node | null = null;
  if (input.node || trained.length > 0) {
    node = tape.node(elements, dtype, () => {
      const toWeights = trained.map((weight) => tape.alloc(weight.elements, dtype));
      const toInput = input.node ? tape.alloc(input.elements, dtype) : null;
      tape.product();
      trained.forEach((weight, index) => {
        tape.give(weight.node!, toWeights[index]!);
      });
      if (toInput) tape.give(input.node!, toInput);
    });
    if (trained.length > 0) tape.save(node, input.buffer);
    if (input.node) for (const weight of weights) tape.save(node, weight.buffer);
  }
  const out = new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
  tape.product();
  tape.drop(input);
  for (const weight of weights) tape.drop(weight);
  return out;
}
