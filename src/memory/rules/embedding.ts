import type { EmbeddingOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { scale } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

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
  if (!op.scaled) return hooked && !leaf ? collect(ctx, looked) : looked;
  const out = scale(tape, looked);
  tape.drop(looked);
  return hooked && !leaf ? collect(ctx, out) : out;
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
