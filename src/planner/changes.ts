import type { MemoryEstimate } from '../memory/index.ts';
import type { PlanValues, SettingName, SpecChange } from '../spec/index.ts';
import { type Combination, harmOf, type Step } from './combination.ts';
import { changedSettings } from './levers/availability.ts';
import type { Lever } from './levers/index.ts';

/** Device peak of some values; undefined: they cannot be estimated. */
export type PeakOf = (values: PlanValues) => number | undefined;

/** Costs for people, `none` only where there is nothing else to say. */
function joinCosts(steps: readonly Step[]): string {
  const texts = [...new Set(steps.map(({ cost }) => cost.text).filter((text) => text !== 'none'))];
  return texts.length > 0 ? texts.join('; ') : 'none';
}

/**
 * What each step takes off the peak, bytes: walked from the settings as they came to the finished plan, in the order levers are
 * applied, so that the parts add up to the whole. A step that raises the peak on the way brings nothing, and the next one only what
 * goes below what was reached before it.
 */
function stepSavings(original: PlanValues, { steps, values }: Combination, peakOf: PeakOf): readonly number[] {
  const end = peakOf(values);
  let lowest = peakOf(original);
  let walked = original;
  return steps.map(({ set }) => {
    walked = { ...walked, ...set };
    const peak = peakOf(walked);
    if (peak === undefined || lowest === undefined || end === undefined) return 0;
    // No lower than where the walk ends: a later step that raises the peak again would leave more saved than there is.
    const reached = Math.min(lowest, Math.max(peak, end));
    const saved = lowest - reached;
    lowest = reached;
    return saved;
  });
}

/**
 * One change per setting. Two levers that move the same setting (8-bit, then paged states) make one change under the lever
 * that alters more. What a lever saves stands in its first change, so that the sum over all changes is what the plan saves.
 * Without an estimate nothing has a price: neither bytes nor time (the length of a row, which decides what a smaller batch costs,
 * may be unknown as well).
 */
export function specChanges(
  original: PlanValues,
  combination: Combination,
  estimate: MemoryEstimate | undefined,
  peakOf: PeakOf,
): readonly SpecChange[] {
  const changes = changedSettings(original, combination.values).map((setting) => {
    const movers = combination.steps.filter(({ set }) => setting in set);
    const worst = movers.reduce((a, b) => (harmOf(b.lever.class) >= harmOf(a.lever.class) ? b : a));
    return { setting, lever: worst.lever, cost: estimate ? joinCosts(movers) : 'not known' };
  });
  const savings = once(() => savingsOf(original, combination, changes, estimate ? peakOf : () => undefined));
  return changes.map(({ setting, lever, cost }, index) => {
    const change = {
      setting: setting as SettingName,
      from: original[setting],
      to: combination.values[setting],
      lever: lever.id,
      class: lever.class,
      cost,
    };
    // Worked out when it is read: most plans that a refusal names are never priced.
    Object.defineProperty(change, 'savesBytes', { enumerable: true, get: () => savings()[index] });
    return change as SpecChange;
  });
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** What stands in each change for the steps of its lever, bytes. */
function savingsOf(
  original: PlanValues,
  combination: Combination,
  changes: readonly { readonly setting: string; readonly lever: Lever }[],
  peakOf: PeakOf,
): readonly number[] {
  const savings = changes.map(() => 0);
  for (const [index, bytes] of stepSavings(original, combination, peakOf).entries()) {
    const { lever, set } = combination.steps[index]!;
    const own = changes.findIndex((change) => change.lever === lever);
    const taker = own >= 0 ? own : changes.findIndex(({ setting }) => setting in set);
    savings[taker] = (savings[taker] ?? 0) + bytes;
  }
  return savings;
}
