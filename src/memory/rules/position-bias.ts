import type { PositionBiasOp } from '../../model/index.ts';
import { repeatRows } from '../tape/primitives.ts';
import { F32, Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/** Bytes of an index. */
const LONG = 8;

/**
 * T5Attention.compute_bias: a bucket (int64) for every pair of positions, kept for the table's gradient, and one value a
 * head and pair. Without a table: zeros in the dtype of the states, which checkpointing asks for a gradient.
 */
export function positionBias(ctx: Context, op: PositionBiasOp, keys: Tensor): Tensor {
  const { tape, batch, tokens } = ctx;
  const pairs = tokens * (keys.elements / (batch * op.keySize));
  const elements = op.heads * pairs;
  if (op.buckets === 0) {
    const dtype = ctx.amp ?? keys.dtype;
    return new Tensor(tape.alloc(elements, dtype), elements, dtype, null);
  }
  const weight = ctx.states.get(op)!.weight!;
  // relative_position, its absolute value, the logarithmic buckets: at most four of them at once.
  const steps = [tape.bytes(pairs * LONG), tape.bytes(pairs * LONG), tape.bytes(pairs * LONG)];
  const index = tape.bytes(pairs * LONG);
  for (const step of steps) tape.release(step);
  const leaf = weight.tensor.node;
  const node = leaf
    ? tape.node(elements, weight.dtype, () => tape.give(leaf, tape.alloc(weight.elements, weight.dtype)))
    : null;
  tape.save(node, index);
  tape.release(index);
  const bias = new Tensor(tape.alloc(elements, weight.dtype), elements, weight.dtype ?? F32, node);
  if (!op.perRow) return bias;
  const copies = repeatRows(tape, bias, batch);
  tape.drop(bias);
  return copies;
}
