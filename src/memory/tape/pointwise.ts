import { giveAs, share } from './gradients.ts';
import { type Buffer, type Dtype, type Node, promote, type Tape, Tensor } from './tape.ts';

/** PyTorch's functions of single elements: what each allocates, saves and what its derivative allocates (see primitives.ts). */

/** `x.to(dtype)`: the same tensor when nothing changes. */
export function cast(tape: Tape, x: Tensor, dtype: Dtype): Tensor {
  if (x.dtype === dtype) return tape.hold(x);
  const { elements, node: parent } = x;
  const node = parent
    ? tape.node(elements, dtype, (grad) => tape.give(parent, tape.allocLike(elements, x.dtype, grad)))
    : null;
  return new Tensor(tape.allocLike(elements, dtype, x.buffer), elements, dtype, node);
}

/** Product of two tensors with broadcasting. */
export function multiply(tape: Tape, a: Tensor, b: Tensor): Tensor {
  const elements = Math.max(a.elements, b.elements);
  const dtype = promote(a.dtype, b.dtype);
  let node: Node | null = null;
  if (a.node || b.node) {
    node = tape.node(elements, dtype, (grad) => {
      const toA = a.node ? tape.allocLike(elements, dtype, grad) : null;
      const toB = b.node ? tape.allocLike(elements, dtype, grad) : null;
      // The engine lets go of it before it fits the results to their inputs.
      tape.release(grad);
      if (toA) giveAs(tape, a, toA, elements, dtype);
      if (toB) giveAs(tape, b, toB, elements, dtype);
      return true;
    });
    if (b.node) tape.save(node, a.buffer);
    if (a.node) tape.save(node, b.buffer);
  }
  const like = a.elements >= b.elements ? a.buffer : b.buffer;
  return new Tensor(tape.allocLike(elements, dtype, like), elements, dtype, node);
}

/** Sum of two tensors with broadcasting: nothing is kept, both get the same gradient. */
export function add(tape: Tape, a: Tensor, b: Tensor, inPlace = false): Tensor {
  const elements = Math.max(a.elements, b.elements);
  const dtype = promote(a.dtype, b.dtype);
  const node =
    a.node || b.node
      ? tape.node(elements, dtype, (grad) => {
          if (a.node) giveAs(tape, a, share(grad), elements, dtype);
          if (b.node) giveAs(tape, b, share(grad), elements, dtype);
        })
      : null;
  if (inPlace) {
    a.buffer.refs += 1;
    return new Tensor(a.buffer, elements, a.dtype, node);
  }
  const like = a.elements >= b.elements ? a.buffer : b.buffer;
  return new Tensor(tape.allocLike(elements, dtype, like), elements, dtype, node);
}

/** Difference with broadcasting: the second one's gradient is a negated copy. */
export function subtract(tape: Tape, a: Tensor, b: Tensor): Tensor {
  const elements = Math.max(a.elements, b.elements);
  const dtype = promote(a.dtype, b.dtype);
  const node =
    a.node || b.node
      ? tape.node(elements, dtype, (grad) => {
          if (a.node) giveAs(tape, a, share(grad), elements, dtype);
          if (b.node) giveAs(tape, b, tape.allocLike(elements, dtype, grad), elements, dtype);
        })
      : null;
  const like = a.elements >= b.elements ? a.buffer : b.buffer;
  return new Tensor(tape.allocLike(elements, dtype, like), elements, dtype, node);
}

/** `torch.where` of equal sizes: the condition is kept, both gradients are masked copies. */
export function where(tape: Tape, condition: Buffer, a: Tensor, b: Tensor): Tensor {
  const dtype = promote(a.dtype, b.dtype);
  const { elements } = a;
  const node =
    a.node || b.node
      ? tape.node(elements, dtype, (grad) => {
          if (a.node) giveAs(tape, a, tape.allocLike(elements, dtype, grad), elements, dtype);
          if (b.node) giveAs(tape, b, tape.allocLike(elements, dtype, grad), elements, dtype);
        })
      : null;
  tape.save(node, condition);
  return new Tensor(tape.allocLike(elements, dtype, a.buffer), elements, dtype, node);
}

/** Times or divided by a Python number; the number is saved, without memory. */
export function scale(tape: Tape, x: Tensor, inPlace = false): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  if (inPlace) x.buffer.refs += 1;
  return new Tensor(inPlace ? x.buffer : tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
}

/** Plus a Python number: the gradient passes through. */
export function offset(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, share(grad))) : null;
  return new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
}

/** A function of one tensor that keeps its input (silu, gelu, …). */
export function keepInput(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  if (node) tape.save(node, x.buffer);
  return new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
}

/** A function of one tensor that keeps its result (tanh, sigmoid, relu, softmax, rsqrt). */
export function keepOutput(tape: Tape, x: Tensor, extraTemporaries = 0): Tensor {
  const parent = x.node;
  const buffer = tape.allocLike(x.elements, x.dtype, x.buffer);
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => {
        const spare: Buffer[] = [];
        for (let i = 0; i < extraTemporaries; i += 1) spare.push(tape.alloc(x.elements, x.dtype));
        const result = tape.allocLike(x.elements, x.dtype, grad);
        for (const temporary of spare) tape.release(temporary);
        tape.give(parent, result);
      })
    : null;
  if (node) tape.save(node, buffer);
  return new Tensor(buffer, x.elements, x.dtype, node);
}

/** `x ** n`: grad × (n × x ** (n − 1)) makes three tensors in the backward pass. */
export function power(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => {
        const raised = tape.alloc(x.elements, x.dtype);
        const scaled = tape.alloc(x.elements, x.dtype);
        const result = tape.allocLike(x.elements, x.dtype, grad);
        tape.release(raised);
        tape.release(scaled);
        tape.give(parent, result);
      })
    : null;
  if (node) tape.save(node, x.buffer);
  return new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
}

/** Mean over groups of `size` elements. */
export function mean(tape: Tape, x: Tensor, size: number): Tensor {
  const parent = x.node;
  const groups = x.elements / size;
  const node = parent
    ? tape.node(groups, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  return new Tensor(tape.alloc(groups, x.dtype), groups, x.dtype, node);
}

/** Dropout: CUDA's kernel (native_dropout) keeps a mask of one byte an element; elsewhere one of the input's dtype is drawn and kept. */
export function dropout(tape: Tape, x: Tensor, p: number): Tensor {
  if (p === 0) return tape.hold(x);
  const mask = tape.byteMasks ? tape.bytes(x.elements) : tape.allocLike(x.elements, x.dtype, x.buffer);
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  if (node) tape.save(node, mask);
  const out = new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
  tape.release(mask);
  return out;
}
