import type { CopyIntoOp } from '../../model/index.ts';
import { type Node, Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';

/**
 * `out = x.new_empty(…); out[..., a:b].copy_(part)`: every copy in place makes one autograd node that copies the whole
 * gradient, takes its own part out and hands the rest on.
 */
export function copyInto(ctx: Context, op: CopyIntoOp, frame: Frame): void {
  const { tape, batch, tokens } = ctx;
  const parts = op.parts.map((name) => read(frame, name));
  const rows = batch * op.heads * tokens;
  const elements = rows * op.features.reduce((total, size) => total + size, 0);
  const { dtype } = parts[0]!;
  const buffer = tape.alloc(elements, dtype);
  buffer.headMajor = true;
  let last: Node | null = null;
  parts.forEach((part, index) => {
    const previous = last;
    if (!previous && !part.node) return;
    last = tape.node(elements, dtype, () => {
      const whole = tape.alloc(elements, dtype);
      whole.headMajor = true;
      const size = rows * op.features[index]!;
      const taken = tape.alloc(size, dtype);
      taken.headMajor = true;
      if (previous) tape.give(previous, whole);
      else tape.release(whole);
      if (!part.node) tape.release(taken);
      else if (size > part.elements) {
        const summed = tape.alloc(part.elements, dtype);
        tape.release(taken);
        tape.give(part.node, summed);
      } else tape.give(part.node, taken);
    });
  });
  bind(ctx, frame, op.output, new Tensor(buffer, elements, dtype, last));
}
