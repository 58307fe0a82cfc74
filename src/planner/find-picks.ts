import { isDeepStrictEqual } from 'node:util';
import type { PlanValues } from '../spec/index.ts';
import { type Combination, extend, type Move, nothingMoved, type OptionsOf } from './combination.ts';
import { LEVERS } from './levers/index.ts';

/** Combinations looked at before a plan counts as not ours: a match is found almost at once or not at all. */
const MOST_TRIES = 4000;

/**
 * Which options of which levers lead from the original values to `target`; undefined: no combination of levers does. Attempts
 * are kept as values (they come back from a run folder), and a retry has to know what was pulled.
 */
export function findPicks(
  original: PlanValues,
  target: PlanValues,
  optionsOf: OptionsOf,
): readonly number[] | undefined {
  let tries = 0;
  const search = (combination: Combination, position: number): readonly number[] | undefined => {
    tries += 1;
    if (tries > MOST_TRIES) return undefined;
    const lever = LEVERS[position];
    if (!lever) return isDeepStrictEqual(combination.values, target) ? combination.picks : undefined;
    const options = optionsOf(lever, combination.values).map((move, index) => ({ move, option: index + 1 }));
    const arrives = ({ move: { set } }: { readonly move: Move }): boolean =>
      (Object.keys(set) as (keyof PlanValues)[]).every((name) => isDeepStrictEqual(set[name], target[name]));
    const exact = options.filter(arrives);
    const others = options.filter((option) => !arrives(option));
    const follow = (candidates: typeof options): readonly number[] | undefined => {
      for (const { move, option } of candidates) {
        const found = search(extend(combination, position, option, move), position + 1);
        if (found) return found;
      }
      return undefined;
    };
    return follow(exact) ?? search(combination, position + 1) ?? follow(others);
  };
  return search(nothingMoved(original), 0);
}
