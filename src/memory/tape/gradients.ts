import type { Buffer, Dtype, Tape, Tensor } from './tape.ts';

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
