import { giveAs } from './gradients.ts';
import { type Buffer, type Node, promote, type Tape, Tensor } from './tape.ts';

/** Matrix products and layer_norm, which keep their factors (see primitives.ts). */

/**
 * Two-dimensional product of `x` (rows × inFeatures) and a weight: keeps `x` for the weight's gradient and the weight
 * for the input's.
 */
export function matmul(
  tape: Tape,
  x: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  rows: number,
  outFeatures: number,
): Tensor {
  const elements = rows * outFeatures;
  const dtype = x.dtype;
  let node: Node | null = null;
  if (bias?.node) {
    node = tape.node(
      elements,
      dtype,
      (_, product) => {
        const toBias = tape.alloc(bias.elements, dtype);
        const [toWeight, toInput] = [weightGradient(tape, product), inputGradient(tape, product)];
        giveAs(tape, bias, toBias, bias.elements, dtype);
        giveBoth(tape, product, toInput, toWeight);
      },
      x,
      weight,
    );
  } else if (x.node || weight.node) node = tape.node(elements, dtype, matmulBackward, x, weight);
  if (weight.node) tape.save(node, x.buffer);
  if (x.node) tape.save(node, weight.buffer);
  const out = tape.alloc(elements, dtype);
  tape.product();
  return new Tensor(out, elements, dtype, node);
}

function matmulBackward(_: Buffer, node: Node, tape: Tape): void {
  const toWeight = weightGradient(tape, node);
  const toInput = inputGradient(tape, node);
  giveBoth(tape, node, toInput, toWeight);
}

function weightGradient(tape: Tape, { b: weight, dtype }: Node): Buffer | null {
  if (!weight!.node) return null;
  const grad = tape.alloc(weight!.elements, dtype);
  tape.product();
  return grad;
}

function inputGradient(tape: Tape, { a: x, dtype }: Node): Buffer | null {
  const grad = x!.node ? tape.alloc(x!.elements, dtype) : null;
  tape.product();
  return grad;
}

function giveBoth(tape: Tape, { a, b }: Node, toA: Buffer | null, toB: Buffer | null): void {
  if (toB) tape.give(b!.node!, toB);
  if (toA) tape.give(a!.node!, toA);
}

/** Batched product for attention: both factors are kept when both need gradients. */
export function batchedMatmul(tape: Tape, a: Tensor, b: Tensor, elements: number): Tensor {
  const dtype = a.dtype;
  const node = a.node || b.node ? tape.node(elements, dtype, batchedBackward, a, b) : null;
  if (b.node) tape.save(node, a.buffer);
  if (a.node) tape.save(node, b.buffer);
  const buffer = tape.alloc(elements, dtype);
  buffer.headMajor = true;
  return new Tensor(buffer, elements, dtype, node);
}

function batchedBackward(_: Buffer, { a, b, dtype }: Node, tape: Tape): void {
  const toA = a!.node ? tape.alloc(a!.elements, dtype) : null;
  const toB = b!.node ? tape.alloc(b!.elements, dtype) : null;
  if (toA) toA.headMajor = true;
  if (toB) toB.headMajor = true;
  if (toA) tape.give(a!.node!, toA);
  if (toB) tape.give(b!.node!, toB);
}

/** F.layer_norm: the input and two fp32 statistics a group are kept. */
export function layerNorm(tape: Tape, x: Tensor, weight: Tensor | null, bias: Tensor | null, size: number): Tensor {
  const groups = x.elements / size;
  const meanBuffer = tape.bytes(groups * 4);
  const rstd = tape.bytes(groups * 4);
  const needs = x.node || weight?.node || bias?.node;
  const out = tape.allocLike(x.elements, x.dtype, x.buffer);
  const node = needs
    ? tape.node(x.elements, x.dtype, (grad) => {
        const toX = x.node ? tape.allocLike(x.elements, x.dtype, grad) : null;
        const toWeight = weight?.node ? tape.alloc(size, weight.dtype) : null;
        const toBias = bias?.node ? tape.alloc(size, bias.dtype) : null;
        if (toWeight) tape.give(weight!.node!, toWeight);
        if (toBias) tape.give(bias!.node!, toBias);
        if (toX) tape.give(x.node!, toX);
      })
    : null;
  if (node) {
    tape.save(node, x.buffer);
    tape.save(node, meanBuffer);
    tape.save(node, rstd);
    if (weight) tape.save(node, null);
    if (bias) tape.save(node, null);
  }
  tape.release(meanBuffer);
  tape.release(rstd);
  return new Tensor(out, x.elements, x.dtype, node);
}

/** Product of two tensors that spans more than either; the gradients are made in full and then summed. */
export function outer(tape: Tape, a: Tensor, b: Tensor, elements: number): Tensor {
  const dtype = promote(a.dtype, b.dtype);
  const node = a.node || b.node ? tape.node(elements, dtype, outerBackward, a, b) : null;
  if (b.node) tape.save(node, a.buffer);
  if (a.node) tape.save(node, b.buffer);
  return new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
}

function outerBackward(_: Buffer, { a, b, elements, dtype }: Node, tape: Tape): void {
  const toA = a!.node ? tape.alloc(elements, dtype) : null;
  const toB = b!.node ? tape.alloc(elements, dtype) : null;
  if (toA) giveAs(tape, a!, toA, elements, dtype);
  if (toB) giveAs(tape, b!, toB, elements, dtype);
}
