import type { EmbeddingOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { add, cast, scale } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';
import { plainLinear } from './linear.ts';

/** Table lookup; the gradient is dense, of the table's size. */
export function embedding(ctx: Context, op: EmbeddingOp, state: OpState): Tensor {
  const { tape, batch, tokens } = ctx;
  // PEFT's enable_input_require_grads hooks the token table alone.
  const hooked = ctx.hookedEmbedding && op.by === 'tokens';
  const weight = state.weight!;
  const rows = op.by === 'positions' ? tokens : batch * tokens;
  const elements = rows * op.size;
  const leaf = weight.tensor.node;
  const table = tape.alloc(elements, weight.dtype);
  const node = leaf
    ? tape.node(elements, weight.dtype, () => tape.give(leaf, tape.alloc(weight.elements, weight.dtype)))
    : null;
  tape.save(node, null);
  const looked = new Tensor(table, elements, weight.dtype, node);
  const scaled = op.scaled ? scale(tape, looked) : tape.hold(looked);
  tape.drop(looked);
  const out = state.lowRank && !ctx.frozen ? adapted(ctx, state.lowRank, scaled, rows, op.size) : scaled;
  return hooked && !leaf ? collect(ctx, out) : out;
}

/** lora.Embedding: a short row a token, brought to the table's size, times a number, added. Takes over `result`. */
function adapted(
  ctx: Context,
  { a, b }: NonNullable<OpState['lowRank']>,
  result: Tensor,
  rows: number,
  size: number,
): Tensor {
  const { tape } = ctx;
  const leaf = a.tensor.node!;
  const elements = rows * a.rows;
  const node = tape.node(elements, a.dtype, () => tape.give(leaf, tape.alloc(a.elements, a.dtype)));
  tape.save(node, null);
  const short = new Tensor(tape.alloc(elements, a.dtype), elements, a.dtype, node);
  const long = plainLinear(ctx, { weight: b, bias: undefined }, short, {
    inFeatures: a.rows,
    outFeatures: size,
    form: 'linear',
  });
  tape.drop(short);
  const update = scale(tape, long);
  tape.drop(long);
  const sum = add(tape, result, update);
  tape.drop(update);
  const out = cast(tape, sum, result.dtype);
  tape.drop(sum);
  tape.drop(result);
  return out;
}

/** `requires_grad_` on the module's result: a leaf that is no parameter. The graph holds it for the gradient it collects. */
function collect(ctx: Context, out: Tensor): Tensor {
  const collector = ctx.tape.node(out.elements, out.dtype, () => {});
  if (collector) {
    out.buffer.refs += 1;
    collector.saved = [out.buffer];
  }
  return new Tensor(out.buffer, out.elements, out.dtype, collector);
}
