import { type Buffer, Node, type Tape, type Tensor } from './tape.ts';

/** Rounds that are walked at either end; the ones between are all alike. */
const FIRST = 4;
const LAST = 3;
/** Allocations that stand for the rounds between in a recording. */
const PIECES = 32;

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
 * ends, forward and backward. In a recording they are a few allocations of whole rounds.
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
    // Rounds share pieces so that a long loop costs no more than a short one; every piece holds whole rounds.
    const pieces = tape.log === null ? 1 : Math.min(between, PIECES);
    const share = (index: number): number =>
      Math.floor(((index + 1) * between) / pieces) - Math.floor((index * between) / pieces);
    const standIn = (bytes: number): Buffer[] =>
      bytes <= 0 ? [] : Array.from({ length: pieces }, (_, index) => tape.bytes(bytes * share(index)));
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
