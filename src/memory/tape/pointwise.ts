import { giveAs, giveLikeInput, passOn, share } from './gradients.ts';
import { type Buffer, type Dtype, type Node, promote, type Tape, Tensor } from './tape.ts';

/** PyTorch's functions of single elements: what each allocates, saves and what its derivative allocates (see primitives.ts). */

/** A node of one input; null when that needs no gradient. */
const nodeOf = (tape: Tape, x: Tensor, backward = giveLikeInput): Node | null =>
  x.node === null ? null : tape.node(x.elements, x.dtype, backward, x);

/** A node of two inputs; null when neither needs a gradient. */
const nodeOfBoth = (
  tape: Tape,
  a: Tensor,
  b: Tensor,
  elements: number,
  dtype: Dtype,
  backward: typeof multiplyBackward | typeof addBackward,
): Node | null => (a.node === null && b.node === null ? null : tape.node(elements, dtype, backward, a, b));

/** A result like `x`. */
const like = (tape: Tape, x: Tensor, node: Node | null): Tensor =>
  new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);

/** `x.to(dtype)`: the same tensor when nothing changes. */
export function cast(tape: Tape, x: Tensor, dtype: Dtype): Tensor {
  if (x.dtype === dtype) return tape.hold(x);
  const { elements } = x;
  const node = x.node === null ? null : tape.node(elements, dtype, giveLikeInput, x);
  return new Tensor(tape.allocLike(elements, dtype, x.buffer), elements, dtype, node);
}

/** Product of two tensors with broadcasting. */
export function multiply(tape: Tape, a: Tensor, b: Tensor): Tensor {
  const elements = Math.max(a.elements, b.elements);
  const dtype = promote(a.dtype, b.dtype);
  const node = nodeOfBoth(tape, a, b, elements, dtype, multiplyBackward);
  if (b.node) tape.save(node, a.buffer);
  if (a.node) tape.save(node, b.buffer);
  const larger = a.elements >= b.elements ? a.buffer : b.buffer;
  return new Tensor(tape.allocLike(elements, dtype, larger), elements, dtype, node);
}

function multiplyBackward(grad: Buffer, { a, b, elements, dtype }: Node, tape: Tape): void {
  const toA = a!.node ? tape.allocLike(elements, dtype, grad) : null;
  const toB = b!.node ? tape.allocLike(elements, dtype, grad) : null;
  if (toA) giveAs(tape, a!, toA, elements, dtype);
  if (toB) giveAs(tape, b!, toB, elements, dtype);
}

/** Sum of two tensors with broadcasting: nothing is kept, both get the same gradient. */
export function add(tape: Tape, a: Tensor, b: Tensor, inPlace = false): Tensor {
  const elements = Math.max(a.elements, b.elements);
  const dtype = promote(a.dtype, b.dtype);
  const node = nodeOfBoth(tape, a, b, elements, dtype, addBackward);
  if (inPlace) return new Tensor(share(a.buffer), elements, a.dtype, node);
  const larger = a.elements >= b.elements ? a.buffer : b.buffer;
  return new Tensor(tape.allocLike(elements, dtype, larger), elements, dtype, node);
}

function addBackward(grad: Buffer, { a, b, elements, dtype }: Node, tape: Tape): void {
  if (a!.node) giveAs(tape, a!, share(grad), elements, dtype);
  if (b!.node) giveAs(tape, b!, share(grad), elements, dtype);
}

/** Difference with broadcasting: the second one's gradient is a negated copy. */
export function subtract(tape: Tape, a: Tensor, b: Tensor): Tensor {
  const elements = Math.max(a.elements, b.elements);
  const dtype = promote(a.dtype, b.dtype);
  const node = nodeOfBoth(tape, a, b, elements, dtype, subtractBackward);
  const larger = a.elements >= b.elements ? a.buffer : b.buffer;
  return new Tensor(tape.allocLike(elements, dtype, larger), elements, dtype, node);
}

function subtractBackward(grad: Buffer, { a, b, elements, dtype }: Node, tape: Tape): void {
  if (a!.node) giveAs(tape, a!, share(grad), elements, dtype);
  if (b!.node) giveAs(tape, b!, tape.allocLike(elements, dtype, grad), elements, dtype);
}

/** `torch.where` of equal sizes: the condition is kept, both gradients are masked copies. */
export function where(tape: Tape, condition: Buffer, a: Tensor, b: Tensor): Tensor {
  const dtype = promote(a.dtype, b.dtype);
  const { elements } = a;
  const node = nodeOfBoth(tape, a, b, elements, dtype, whereBackward);
  tape.save(node, condition);
  return new Tensor(tape.allocLike(elements, dtype, a.buffer), elements, dtype, node);
}

function whereBackward(grad: Buffer, { a, b, elements, dtype }: Node, tape: Tape): void {
  if (a!.node) giveAs(tape, a!, tape.allocLike(elements, dtype, grad), elements, dtype);
  if (b!.node) giveAs(tape, b!, tape.allocLike(elements, dtype, grad), elements, dtype);
}

/** Times or divided by a Python number; the number is saved, without memory. */
export function scale(tape: Tape, x: Tensor, inPlace = false): Tensor {
  const node = nodeOf(tape, x);
  return inPlace ? new Tensor(share(x.buffer), x.elements, x.dtype, node) : like(tape, x, node);
}

/** Plus a Python number: the gradient passes through. */
export function offset(tape: Tape, x: Tensor): Tensor {
  const node = nodeOf(tape, x, passOn);
  return like(tape, x, node);
}

/** A function of one tensor that keeps its input (silu, gelu, …; erf has four temporaries in its derivative). */
export function keepInput(tape: Tape, x: Tensor, extraTemporaries: 0 | 4 = 0): Tensor {
  const node = nodeOf(tape, x, extraTemporaries === 0 ? giveLikeInput : giveAfterFour);
  tape.save(node, x.buffer);
  return like(tape, x, node);
}

/** A function of one tensor that keeps its result (tanh, sigmoid, relu, softmax, rsqrt). */
export function keepOutput(tape: Tape, x: Tensor, extraTemporaries: 0 | 2 = 0): Tensor {
  const buffer = tape.allocLike(x.elements, x.dtype, x.buffer);
  const node = nodeOf(tape, x, extraTemporaries === 0 ? giveLikeInput : giveAfterTwo);
  tape.save(node, buffer);
  return new Tensor(buffer, x.elements, x.dtype, node);
}

/** `x ** n`: grad × (n × x ** (n − 1)) makes three tensors in the backward pass. */
export function power(tape: Tape, x: Tensor): Tensor {
  const node = nodeOf(tape, x, giveAfterTwo);
  tape.save(node, x.buffer);
  return like(tape, x, node);
}

/** The derivative is a product of three factors: two tensors beside the gradient. */
function giveAfterTwo(grad: Buffer, { a }: Node, tape: Tape): void {
  const { elements, dtype, node } = a!;
  const first = tape.alloc(elements, dtype);
  const second = tape.alloc(elements, dtype);
  const result = tape.allocLike(elements, dtype, grad);
  tape.release(first);
  tape.release(second);
  tape.give(node!, result);
}

/** `c * exp(-x²) * grad`: a tensor for every step. */
function giveAfterFour(grad: Buffer, { a }: Node, tape: Tape): void {
  const { elements, dtype, node } = a!;
  const temporaries = [0, 1, 2, 3].map(() => tape.alloc(elements, dtype));
  const result = tape.allocLike(elements, dtype, grad);
  for (const temporary of temporaries) tape.release(temporary);
  tape.give(node!, result);
}

/** Mean over groups of `size` elements. */
export function mean(tape: Tape, x: Tensor, size: number): Tensor {
  const groups = x.elements / size;
  const node = x.node === null ? null : tape.node(groups, x.dtype, giveLikeInput, x);
  return new Tensor(tape.alloc(groups, x.dtype), groups, x.dtype, node);
}

/** Dropout: CUDA's kernel (native_dropout) keeps a mask of one byte an element; elsewhere one of the input's dtype is drawn and kept. */
export function dropout(tape: Tape, x: Tensor, p: number): Tensor {
  if (p === 0) return tape.hold(x);
  const mask = tape.byteMasks ? tape.bytes(x.elements) : tape.allocLike(x.elements, x.dtype, x.buffer);
  const node = nodeOf(tape, x);
  tape.save(node, mask);
  const out = like(tape, x, node);
  tape.release(mask);
  return out;
}
