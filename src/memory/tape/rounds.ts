import { type Buffer, Node, type Tape, type Tensor } from './tape.ts';

/** Rounds that are walked at either end; the ones between are all alike. */
const FIRST = 4;
const LAST = 3;

/** What a loop hands back. */
export interface Rounds {
  /** Results that a list holds, of the rounds that were walked. */
  readonly results: readonly Tensor[];
  /** Lets go of the list. */
  readonly end: () => void;
}

/**
 * A loop of `times` rounds; what a round returns goes into a list. The first and the last are walked. What each of those
 * between leaves behind is measured once and stands there as a whole: every round adds the same, so that the peaks lie at the
 * ends, forward and backward. With a recording every round between has an allocation of its own.
 */
export function rounds(tape: Tape, times: number, round: (index: number) => Tensor | undefined): Rounds {
  const results: Tensor[] = [];
  const walk = (index: number): void => {
    const result = round(index);
    if (result) results.push(result);
  };
  const listed: Buffer[] = [];
  const between = times - FIRST - 1 - LAST;
  for (let index = 0; index < (between > 0 ? FIRST : times); index += 1) walk(index);
  if (between > 0) {
    const [before, saves, known] = [tape.held(), tape.saves, results.length];
    walk(FIRST);
    const perRound = tape.saves - saves;
    const inList = results.length > known ? results.at(-1)!.buffer.bytes : 0;
    const pieces = tape.log === null ? 1 : between;
    const standIn = (bytes: number): Buffer[] =>
      bytes <= 0 ? [] : Array.from({ length: pieces }, () => tape.bytes((bytes * between) / pieces));
    const kept = tape.held() - before;
    listed.push(...standIn(inList));
    const saved = standIn(kept - inList);
    tape.saves += perRound * between;
    if (!tape.noGrad) {
      const node = new Node(0, 0, null);
      node.saved = saved;
      tape.nodes.push(node);
    }
    for (let index = times - LAST; index < times; index += 1) walk(index);
  }
  return {
    results,
    end: () => {
      for (const result of results) tape.drop(result);
      for (const buffer of listed) tape.release(buffer);
    },
  };
}
