import type { EmbeddingOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/** Table lookup; the gradient is dense, of the table's size. `hooked`: PEFT's enable_input_require_grads on a frozen table. */
export function embedding(ctx: Context, op: EmbeddingOp, state: OpState, hooked: boolean): Tensor {
  const { tape, batch, tokens } = ctx;
  const weight = state.weight!;
  const rows = op.by === 'positions' ? tokens : batch * tokens;
  const elements = rows * op.size;
  const leaf = weight.tensor.node;
  const out = tape.alloc(elements, weight.dtype);
  if (!leaf) {
    // A leaf that only collects its gradient: `.grad` of the embedding's result stays until the next step.
    return new Tensor(out, elements, weight.dtype, hooked ? tape.node(elements, weight.dtype, () => {}) : null);
  }
  const node = tape.node(elements, weight.dtype, () => tape.give(leaf, tape.alloc(weight.elements, weight.dtype)));
  tape.save(node, null);
  return new Tensor(out, elements, weight.dtype, node);
}
