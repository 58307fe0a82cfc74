import type { MemoryEstimate } from '../memory/index.ts';
import type { PlanValues, SettingName, SpecChange } from '../spec/index.ts';
import { applyPicks, type Combination, harmOf, type OptionsOf, type Step } from './combination.ts';
import { changedSettings } from './levers/availability.ts';

/** Device peak of some values; undefined: they cannot be estimated. */
export type PeakOf = (values: PlanValues) => number | undefined;

/** Costs for people, `none` only where there is nothing else to say. */
function joinCosts(steps: readonly Step[]): string {
  const texts = [...new Set(steps.map(({ cost }) => cost.text).filter((text) => text !== 'none'))];
  return texts.length > 0 ? texts.join('; ') : 'none';
}

/**
 * One change per setting. Two levers that move the same setting (8-bit, then paged states) make one change under the lever
 * that alters more. What a lever saves is what taking it out of the finished plan would add. Without an estimate nothing has a
 * price: neither bytes nor time (the length of a row, which decides what a smaller batch costs, may be unknown as well).
 */
export function specChanges(
  original: PlanValues,
  combination: Combination,
  estimate: MemoryEstimate | undefined,
  optionsOf: OptionsOf,
  peakOf: PeakOf,
): readonly SpecChange[] {
  const saving = (removed: readonly Step[]): number => {
    if (!estimate) return 0;
    const picks = combination.picks.map((option, position) =>
      removed.some((step) => step.position === position) ? 0 : option,
    );
    const without = peakOf(applyPicks(original, picks, optionsOf).values);
    return without === undefined ? 0 : Math.max(0, without - estimate.vram.devicePeakBytes);
  };
  return changedSettings(original, combination.values).map((setting) => {
    const movers = combination.steps.filter(({ set }) => setting in set);
    const worst = movers.reduce((a, b) => (harmOf(b.lever.class) >= harmOf(a.lever.class) ? b : a));
    return {
      setting: setting as SettingName,
      from: original[setting],
      to: combination.values[setting],
      lever: worst.lever.id,
      class: worst.lever.class,
      savesBytes: saving(movers),
      cost: estimate ? joinCosts(movers) : 'not known',
    } as SpecChange;
  });
}
