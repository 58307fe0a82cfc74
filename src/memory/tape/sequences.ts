import { giveInOrder, passOn, share } from './gradients.ts';
import { type Node, type Tape, Tensor } from './tape.ts';

/** Functions along a sequence: padding, running sums, single steps out of a whole and into one (see primitives.ts). */

/** `F.pad`: a copy, with and without any padding; so is its gradient. */
export function pad(tape: Tape, x: Tensor, elements: number): Tensor {
  const node = x.node === null ? null : tape.node(elements, x.dtype, giveInOrder, x);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** `cumsum`: its gradient is flipped, summed and flipped again. */
export function runningSum(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, () => {
        const flipped = tape.alloc(x.elements, x.dtype);
        const summed = tape.alloc(x.elements, x.dtype);
        tape.release(flipped);
        const result = tape.alloc(x.elements, x.dtype);
        tape.release(summed);
        tape.give(parent, result);
      })
    : null;
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}

/** Sum over a dimension: nothing is kept, the gradient is a view that the next function makes real. */
export function sumTo(tape: Tape, x: Tensor, elements: number): Tensor {
  const node = x.node === null ? null : tape.node(elements, x.dtype, passOn, x);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** `x[:, :, i]`: a view; its gradient is put into zeros of the whole size. */
export function select(tape: Tape, x: Tensor, elements: number): Tensor {
  const node = x.node === null ? null : tape.node(elements, x.dtype, giveInOrder, x);
  return new Tensor(share(x.buffer), elements, x.dtype, node);
}

/**
 * `whole[:, :, i] = value`: in place; backward copies the whole gradient, takes the value's part out and hands the rest on.
 * Returns the new view of `whole`; takes over both.
 */
export function assignInto(tape: Tape, whole: Tensor, value: Tensor): Tensor {
  let node: Node | null = null;
  const [previous, source] = [whole.node, value.node];
  if (previous || source) {
    node = tape.node(whole.elements, whole.dtype, () => {
      const copy = tape.alloc(whole.elements, whole.dtype);
      const part = tape.alloc(value.elements, value.dtype);
      tape.release(tape.alloc(value.elements, value.dtype));
      if (previous) tape.give(previous, copy);
      else tape.release(copy);
      if (source) tape.give(source, part);
      else tape.release(part);
    });
  }
  tape.drop(value);
  return new Tensor(whole.buffer, whole.elements, whole.dtype, node);
}

/** `torch.linalg.solve_triangular(a, b)`: a and the solution are kept. */
export function solveTriangular(tape: Tape, a: Tensor, b: Tensor): Tensor {
  const buffer = tape.alloc(b.elements, b.dtype);
  let node: Node | null = null;
  if (a.node || b.node) {
    node = tape.node(b.elements, b.dtype, () => {
      const toB = tape.alloc(b.elements, b.dtype);
      let toA = null;
      if (a.node) {
        const product = tape.alloc(a.elements, a.dtype);
        const negated = tape.alloc(a.elements, a.dtype);
        tape.release(product);
        toA = tape.alloc(a.elements, a.dtype);
        tape.release(negated);
      }
      if (toA) tape.give(a.node!, toA);
      if (b.node) tape.give(b.node, toB);
      else tape.release(toB);
    });
    tape.save(node, a.buffer);
    tape.save(node, buffer);
  }
  return new Tensor(buffer, b.elements, b.dtype, node);
}
