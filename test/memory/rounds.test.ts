import { describe, expect, it } from 'vitest';
import { add, cast, multiply, select } from '../../src/memory/tape/primitives.ts';
import { rounds } from '../../src/memory/tape/rounds.ts';
import { BF16, F32, Node, type Segment, Tape, Tensor } from '../../src/memory/tape/tape.ts';

const ROW = 3000;

/** A recurrence over `times` rows of one tensor: every state is kept, every result goes into a list. */
function recurrence(times: number, unrolled: boolean, discarding = false): readonly Segment[] {
  const tape = new Tape();
  tape.discarding = discarding;
  tape.begin();
  const leaf = new Node(ROW * times, F32, null);
  leaf.leaf = { uses: times, arrived: 0, pending: null };
  const whole = new Tensor(tape.alloc(ROW * times, F32), ROW * times, F32, leaf);
  let state = new Tensor(tape.alloc(ROW, F32), ROW, F32, null);
  const step = (): Tensor => {
    const part = select(tape, whole, ROW);
    const product = multiply(tape, part, state);
    const next = add(tape, product, part);
    for (const tensor of [part, product, state]) tape.drop(tensor);
    state = next;
    return cast(tape, state, BF16);
  };
  if (unrolled) {
    const list = Array.from({ length: times }, step);
    for (const result of list) tape.drop(result);
  } else rounds(tape, times, step).end();
  const forward = tape.end();
  tape.begin();
  if (state.node) state.node.grad = tape.alloc(ROW, F32);
  tape.drop(state);
  tape.backward();
  return [forward, tape.end()];
}

const sums = (segments: readonly Segment[]): unknown => segments.map(({ peak, end }) => ({ peak, end }));

describe('loops of equal rounds', () => {
  it.each([1, 7, 8, 9, 50])('takes %i rounds for what they are one by one', (times) => {
    const [forward] = recurrence(times, false);
    const [unrolled] = recurrence(times, true);
    expect(sums([forward!])).toEqual(sums([unrolled!]));
  });

  it('lets go of what rounds have kept on the way back', () => {
    expect(recurrence(60, false)[1]!.peak).toBe(recurrence(60, true)[1]!.peak);
  });

  it('keeps nothing where a checkpoint throws it away', () => {
    expect(sums(recurrence(40, false, true))).toEqual(sums(recurrence(40, true, true)));
  });
});
