import { LEVER_CLASSES, type LeverClass, type PlanValues } from '../spec/index.ts';
import { availableOptions } from './levers/availability.ts';
import { LEVERS, type Lever, type LeverCost, priceMove, type StepSeconds } from './levers/index.ts';
import type { Surroundings } from './plan.ts';

/** One lever moved: the values before and after it. */
export interface Step {
  readonly lever: Lever;
  /** Index into `LEVERS`. */
  readonly position: number;
  /** 1: the mildest option. */
  readonly option: number;
  readonly set: Partial<PlanValues>;
  readonly cost: LeverCost;
}

/** Levers moved together, in registry order. */
export interface Combination {
  readonly values: PlanValues;
  /** Option of each lever of the registry; 0: left alone. */
  readonly picks: readonly number[];
  readonly steps: readonly Step[];
  /** Product of the cost factors. */
  readonly factor: number;
}

export const harmOf = (leverClass: LeverClass): number => LEVER_CLASSES.indexOf(leverClass);

/** Whether a lever changes more than speed and memory: a free or exact one gives the same result up to rounding. */
export const altersTraining = (lever: Lever): boolean => lever.class !== 'free' && lever.class !== 'exact';

/** The worst class among the levers moved; free when there is none. */
export const worstClass = ({ steps }: Combination): LeverClass =>
  LEVER_CLASSES[Math.max(0, ...steps.map(({ lever }) => harmOf(lever.class)))]!;

/**
 * How much of what is trained is altered, within one class: levers that alter it count once, and those that change the method or
 * the data once per option, so that halving rows twice is worse than once, whatever the speed.
 */
const degree = ({ steps }: Combination): number =>
  steps.reduce((sum, { lever, option }) => {
    if (!altersTraining(lever)) return sum;
    return sum + (lever.class === 'method' || lever.class === 'data' ? option : 1);
  }, 0);
const mildness = ({ picks }: Combination): number => picks.reduce((sum, option) => sum + option, 0);
/** In percent of the step time: no prediction is finer. */
const speed = ({ factor }: Combination): number => Math.round(factor * 100);

/**
 * Which of two plans that fit is better: least change in meaning, then fastest, then fewest changes, then mildest options.
 * Negative: `a`.
 */
export const compareCombinations = (a: Combination, b: Combination): number =>
  compareTiers(a, b) || a.steps.length - b.steps.length || mildness(a) - mildness(b);

/** The part of the order that is decided before counting changes: meaning and speed. */
export const compareTiers = (a: Combination, b: Combination): number =>
  harmOf(worstClass(a)) - harmOf(worstClass(b)) || degree(a) - degree(b) || speed(a) - speed(b);

/** Whether `a` pulls every lever at least as far as `b`, and so needs no more memory. */
export const atLeast = (a: Combination, b: Combination): boolean =>
  a.picks.every((option, position) => option >= b.picks[position]!);

export const nothingMoved = (values: PlanValues): Combination => ({
  values,
  picks: LEVERS.map(() => 0),
  steps: [],
  factor: 1,
});

/** One option of a lever on given values, with its price. */
export interface Move {
  readonly set: Partial<PlanValues>;
  readonly cost: LeverCost;
}

/** Answers for a lever on given values; kept, because asking a dialect what it can write is not free. */
export type OptionsOf = (lever: Lever, values: PlanValues) => readonly Move[];

/** The options of levers under one set of surroundings, limited to those `permitted`. */
export function optionSource(
  surroundings: Surroundings,
  permitted: (lever: Lever) => boolean,
  stepSeconds: StepSeconds,
): OptionsOf {
  const answers = new Map<string, true | string>();
  const writable: Surroundings['writable'] = (setting, to, together) => {
    const key = `${setting} ${JSON.stringify([to, together])}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = surroundings.writable(setting, to, together);
    answers.set(key, answer);
    return answer;
  };
  const remembering = { ...surroundings, writable };
  return (lever, values) => {
    if (!permitted(lever)) return [];
    const options = availableOptions(lever, values, remembering);
    if (typeof options === 'string') return [];
    return options.map((set) => ({ set, cost: priceMove(lever, values, { ...values, ...set }, stepSeconds) }));
  };
}

/** `combination` with one more lever, which must stand after those already moved. */
export function extend(combination: Combination, position: number, option: number, { set, cost }: Move): Combination {
  const lever = LEVERS[position]!;
  return {
    values: { ...combination.values, ...set },
    picks: combination.picks.with(position, option),
    steps: [...combination.steps, { lever, position, option, set, cost }],
    factor: combination.factor * cost.factor,
  };
}

/**
 * Applies picks to the original values in registry order. A pick beyond what a lever offers after the earlier ones means its
 * strongest option there; a lever that offers nothing is left alone.
 */
export function applyPicks(values: PlanValues, picks: readonly number[], optionsOf: OptionsOf): Combination {
  return LEVERS.reduce((combination, lever, position) => {
    const wanted = picks[position] ?? 0;
    if (wanted === 0) return combination;
    const options = optionsOf(lever, combination.values);
    const option = Math.min(wanted, options.length);
    return option === 0 ? combination : extend(combination, position, option, options[option - 1]!);
  }, nothingMoved(values));
}

/** Every combination of the levers' options, nothing moved included; levers of `held` are pulled that far in all of them. */
export function allCombinations(
  values: PlanValues,
  optionsOf: OptionsOf,
  held: ReadonlyMap<Lever, number>,
): readonly Combination[] {
  return LEVERS.reduce<readonly Combination[]>(
    (combinations, lever, position) => {
      const wanted = held.get(lever);
      return combinations.flatMap((combination) => {
        const moves = optionsOf(lever, combination.values);
        if (wanted === undefined)
          return [combination, ...moves.map((move, index) => extend(combination, position, index + 1, move))];
        const option = Math.min(wanted, moves.length);
        return option === 0 ? [combination] : [extend(combination, position, option, moves[option - 1]!)];
      });
    },
    [nothingMoved(values)],
  );
}
