import type { SplitOp } from '../../model/index.ts';
import { indexed, slice, split } from '../tape/primitives.ts';
import type { Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';

/** Parts of one tensor by their names; see SplitOp for the forms. */
export function divide(ctx: Context, op: SplitOp, frame: Frame): void {
  const x = read(frame, op.input);
  const features = op.of ?? op.outputs.reduce((total, part) => total + part.features, 0);
  const sizes = op.outputs.map((part) => (x.elements / features) * part.features);
  const parts = partsOf(ctx, op, x, sizes);
  op.outputs.forEach((part, index) => {
    bind(ctx, frame, part.name, parts[index]!);
  });
  done(ctx, frame, op.input);
}

function partsOf(ctx: Context, op: SplitOp, x: Tensor, sizes: readonly number[]): Tensor[] {
  const { tape } = ctx;
  switch (op.form) {
    case 'chunk':
      return split(tape, x, sizes, false);
    case 'chunk_heads':
      return split(tape, x, sizes, true);
    case 'slices':
      return sizes.map((size) => slice(tape, x, size, false));
    case 'copies':
      return sizes.map((size, index) => (index === 0 ? slice(tape, x, size, false) : indexed(tape, x, size)));
  }
}
