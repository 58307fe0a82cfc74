import type { Buffer, Dtype, Node, Tape, Tensor } from './tape.ts';

/** Reduces a gradient to the input's size and casts it to the input's dtype (the engine's validate_outputs), then hands it over. */
export function giveAs(tape: Tape, target: Tensor, grad: Buffer, elements: number, dtype: Dtype): void {
  tape.endOfApply();
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

/** One more reference to the same gradient. */
export const share = (buffer: Buffer): Buffer => {
  buffer.refs += 1;
  return buffer;
};

/** The gradient of a node's one input is a tensor of that input's size and dtype, laid out as the one that came. */
export function giveLikeInput(grad: Buffer, { a }: Node, tape: Tape): void {
  const { elements, dtype, node } = a!;
  tape.give(node!, tape.allocLike(elements, dtype, grad));
}

/** The same, in the order of the input's dimensions. */
export function giveInOrder(_: Buffer, { a }: Node, tape: Tape): void {
  const { elements, dtype, node } = a!;
  tape.give(node!, tape.alloc(elements, dtype));
}

/** The gradient passes through. */
export function passOn(grad: Buffer, { a }: Node, tape: Tape): void {
  tape.give(a!.node!, share(grad));
}

/** A node whose inputs get nothing: what enters a stretch from outside. */
export function endHere(): void {}
