import { giveInOrder, passOn, share } from './gradients.ts';
import { type Buffer, type Dtype, type Node, promote, type Tape, Tensor } from './tape.ts';

/** Functions that move or share elements: slices, parts, copies in another layout (see primitives.ts). */

/** Concatenation along the last dimension; the parts' gradients are views of the whole one. */
export function concatenate(tape: Tape, parts: readonly Tensor[]): Tensor {
  let elements = 0;
  let needs = false;
  for (const part of parts) {
    elements += part.elements;
    if (part.node) needs = true;
  }
  const dtype = parts.reduce<Dtype>((all, part) => promote(all, part.dtype), parts[0]!.dtype);
  const node = needs
    ? tape.node(elements, dtype, (grad) => {
        for (const part of parts) {
          if (!part.node) continue;
          if (part.dtype === dtype) tape.give(part.node, share(grad));
          else tape.give(part.node, tape.allocLike(part.elements, part.dtype, grad));
        }
      })
    : null;
  return new Tensor(tape.allocLike(elements, dtype, parts[0]!.buffer), elements, dtype, node);
}

/** `x[..., a:b]`: a view; its gradient is padded with zeros to the whole size, in the order of x's dimensions. */
export function slice(tape: Tape, x: Tensor, elements: number, headMajor: boolean): Tensor {
  const node = x.node === null ? null : tape.node(elements, x.dtype, headMajor ? giveHeadMajor : giveInOrder, x);
  return new Tensor(share(x.buffer), elements, x.dtype, node);
}

/** The gradient is a tensor like the input with heads before tokens. */
function giveHeadMajor(_: Buffer, { a }: Node, tape: Tape): void {
  const { elements, dtype, node } = a!;
  const grad = tape.alloc(elements, dtype);
  grad.headMajor = true;
  tape.give(node!, grad);
}

/** `x[..., [i], :]`: a copy; its gradient is put into zeros of the whole size. */
export function indexed(tape: Tape, x: Tensor, elements: number): Tensor {
  const node = x.node === null ? null : tape.node(elements, x.dtype, giveInOrder, x);
  tape.save(node, null);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}

/** `chunk` / `split`: views of one tensor whose gradients are concatenated once all are there. */
export function split(tape: Tape, x: Tensor, sizes: readonly number[], headMajor: boolean): Tensor[] {
  const parent = x.node;
  if (!parent) {
    return sizes.map((size) => new Tensor(share(x.buffer), size, x.dtype, null));
  }
  const slots: (Buffer | null)[] = sizes.map(() => null);
  const whole: Node | null = tape.node(x.elements, x.dtype, (grad) => {
    const joined = tape.alloc(x.elements, x.dtype);
    joined.headMajor = headMajor;
    tape.give(parent, joined);
    // `grad` is the marker that some part has a gradient; the parts themselves end here.
    slots.forEach((slot, index) => {
      if (slot) tape.release(slot);
      slots[index] = null;
    });
    void grad;
  });
  return sizes.map((size, index) => {
    const part = tape.node(size, x.dtype, (grad) => {
      slots[index] = share(grad);
      if (whole && whole.grad === null) whole.grad = tape.bytes(0);
    });
    return new Tensor(share(x.buffer), size, x.dtype, part);
  });
}

/**
 * `expand` made real, heads before tokens (repeat_kv): the gradient is summed back. A single head stays a view: its
 * expanded dimension merges with stride 0.
 */
export function repeat(tape: Tape, x: Tensor, times: number, single = false): Tensor {
  if (times === 1) return tape.hold(x);
  const elements = x.elements * times;
  const node = x.node === null ? null : tape.node(elements, x.dtype, giveHeadMajor, x);
  if (single) return new Tensor(share(x.buffer), elements, x.dtype, node);
  const buffer = tape.alloc(elements, x.dtype);
  buffer.headMajor = true;
  return new Tensor(buffer, elements, x.dtype, node);
}

/** `repeat(times, 1, 1)`: a real copy for every row; the gradient is summed back. */
export function repeatRows(tape: Tape, x: Tensor, times: number): Tensor {
  const elements = x.elements * times;
  const node = x.node === null ? null : tape.node(elements, x.dtype, giveInOrder, x);
  const buffer = tape.alloc(elements, x.dtype);
  buffer.headMajor = true;
  return new Tensor(buffer, elements, x.dtype, node);
}

/** A copy of the same tensor in another layout. */
export function copy(tape: Tape, x: Tensor, headMajor: boolean): Tensor {
  const node = x.node === null ? null : tape.node(x.elements, x.dtype, passOn, x);
  const buffer = tape.alloc(x.elements, x.dtype);
  buffer.headMajor = headMajor;
  return new Tensor(buffer, x.elements, x.dtype, node);
}

/** View as heads: no memory now; the gradient comes back as (batch, tokens, features) and is copied if it lies otherwise. */
export function viewHeads(tape: Tape, x: Tensor): Tensor {
  const node = x.node === null ? null : tape.node(x.elements, x.dtype, viewBackward, x);
  return new Tensor(share(x.buffer), x.elements, x.dtype, node);
}

function viewBackward(grad: Buffer, node: Node, tape: Tape): void {
  if (grad.headMajor) giveInOrder(grad, node, tape);
  else passOn(grad, node, tape);
}

/** A tensor that is a constant of the step (tables, masks). */
export const constant = (buffer: Buffer, elements: number, dtype: Dtype): Tensor =>
  new Tensor(buffer, elements, dtype, null);
