import type { Dtype } from './tape.ts';
import { type Buffer, F32, Node, promote, type Tape, Tensor } from './tape.ts';

/**
 * PyTorch's own functions: what each allocates, saves and what its derivative allocates. Formulas:
 * https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml
 * Every function returns a tensor with one reference of its own.
 */

/** Reduces a gradient to the input's size and casts it to the input's dtype (the engine's validate_outputs), then hands it over. */
export function giveAs(tape: Tape, target: Tensor, grad: Buffer, elements: number, dtype: Dtype): void {
  let current = grad;
  if (target.elements < elements) {
    const reduced = tape.alloc(target.elements, dtype);
    tape.release(current);
    current = reduced;
  }
  if (target.dtype !== dtype) {
    const cast = tape.allocLike(target.elements, target.dtype, current);
    tape.release(current);
    current = cast;
  }
  tape.give(target.node!, current);
}

const share = (buffer: Buffer): Buffer => {
  buffer.refs += 1;
  return buffer;
};

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
      if (toA) giveAs(tape, a, toA, elements, dtype);
      if (toB) giveAs(tape, b, toB, elements, dtype);
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

/** Times or divided by a Python number; the number is saved, without memory. */
export function scale(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  if (node) tape.save(node, null);
  return new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
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
  const parent = x.node;
  const node = parent
    ? tape.node(elements, x.dtype, () => {
        const padded = tape.alloc(x.elements, x.dtype);
        padded.headMajor = headMajor;
        tape.give(parent, padded);
      })
    : null;
  x.buffer.refs += 1;
  return new Tensor(x.buffer, elements, x.dtype, node);
}

/** `x[..., [i], :]`: a copy; its gradient is put into zeros of the whole size. */
export function indexed(tape: Tape, x: Tensor, elements: number): Tensor {
  const parent = x.node;
  const node = parent ? tape.node(elements, x.dtype, () => tape.give(parent, tape.alloc(x.elements, x.dtype))) : null;
  if (node) tape.save(node, null);
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
  const parent = x.node;
  const elements = x.elements * times;
  const node = parent
    ? tape.node(elements, x.dtype, () => {
        const summed = tape.alloc(x.elements, x.dtype);
        summed.headMajor = true;
        tape.give(parent, summed);
      })
    : null;
  if (single) {
    x.buffer.refs += 1;
    return new Tensor(x.buffer, elements, x.dtype, node);
  }
  const buffer = tape.alloc(elements, x.dtype);
  buffer.headMajor = true;
  return new Tensor(buffer, elements, x.dtype, node);
}

/** A copy of the same tensor in another layout. */
export function copy(tape: Tape, x: Tensor, headMajor: boolean): Tensor {
  const parent = x.node;
  const node = parent ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, share(grad))) : null;
  const buffer = tape.alloc(x.elements, x.dtype);
  buffer.headMajor = headMajor;
  return new Tensor(buffer, x.elements, x.dtype, node);
}

/** View as heads: no memory now; the gradient comes back as (batch, tokens, features) and is copied if it lies otherwise. */
export function viewHeads(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => {
        if (grad.headMajor) tape.give(parent, tape.alloc(x.elements, x.dtype));
        else tape.give(parent, share(grad));
      })
    : null;
  x.buffer.refs += 1;
  return new Tensor(x.buffer, x.elements, x.dtype, node);
}

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
  if (x.node || weight.node || bias?.node) {
    node = tape.node(elements, dtype, () => {
      const toBias = bias?.node ? tape.alloc(bias.elements, dtype) : null;
      const toWeight = weight.node ? tape.alloc(weight.elements, dtype) : null;
      const toInput = x.node ? tape.alloc(x.elements, dtype) : null;
      if (toBias) giveAs(tape, bias!, toBias, bias!.elements, dtype);
      if (toWeight) tape.give(weight.node!, toWeight);
      if (toInput) tape.give(x.node!, toInput);
    });
    if (weight.node) tape.save(node, x.buffer);
    if (x.node) tape.save(node, weight.buffer);
  }
  return new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
}

/** Batched product for attention: both factors are kept when both need gradients. */
export function batchedMatmul(tape: Tape, a: Tensor, b: Tensor, elements: number): Tensor {
  const dtype = a.dtype;
  let node: Node | null = null;
  if (a.node || b.node) {
    node = tape.node(elements, dtype, () => {
      const toA = a.node ? tape.alloc(a.elements, dtype) : null;
      const toB = b.node ? tape.alloc(b.elements, dtype) : null;
      if (toA) toA.headMajor = true;
      if (toB) toB.headMajor = true;
      if (toA) tape.give(a.node!, toA);
      if (toB) tape.give(b.node!, toB);
    });
    if (b.node) tape.save(node, a.buffer);
    if (a.node) tape.save(node, b.buffer);
  }
  const buffer = tape.alloc(elements, dtype);
  buffer.headMajor = true;
  return new Tensor(buffer, elements, dtype, node);
}

/**
 * Dropout without a fused kernel: a mask of the input's dtype is drawn and kept. CUDA's fused kernel keeps one byte an
 * element instead; the larger is assumed.
 */
export function dropout(tape: Tape, x: Tensor, p: number): Tensor {
  if (p === 0) return tape.hold(x);
  const mask = tape.allocLike(x.elements, x.dtype, x.buffer);
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, tape.allocLike(x.elements, x.dtype, grad)))
    : null;
  if (node) tape.save(node, mask);
  const out = new Tensor(tape.allocLike(x.elements, x.dtype, x.buffer), x.elements, x.dtype, node);
  tape.release(mask);
  return out;
}

/** log_softmax or softmax of fp32 values: the result is kept. */
export const softmax = (tape: Tape, x: Tensor): Tensor => keepOutput(tape, x);

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

/** A tensor that is a constant of the step (tables, masks). */
export const constant = (buffer: Buffer, elements: number, dtype: Dtype): Tensor =>
  new Tensor(buffer, elements, dtype, null);

export { F32, Node };
