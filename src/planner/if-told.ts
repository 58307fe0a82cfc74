import type { SettingName } from '../spec/index.ts';
import { type Combination, compareCombinations, optionSource } from './combination.ts';
import { changedSettings, untoldSettings } from './levers/availability.ts';
import { LEVERS } from './levers/index.ts';
import { permits } from './permits.ts';
import type { PlanRequest, Surroundings } from './plan.ts';
import { type SearchRequest, searchPlan } from './search.ts';

/** A plan that fits, and what the launch would have to be told for it. */
export interface ToldPlan {
  readonly plan: Combination;
  readonly settings: readonly SettingName[];
}

/**
 * The mildest plan that would fit if the launch could be told more than it can, by one lever where one is enough: a person has to
 * make room for each setting by hand. Undefined: there is none.
 */
export function planIfTold(
  { values, policy, surroundings, stepSeconds }: PlanRequest,
  search: Pick<SearchRequest, 'values' | 'estimateOf' | 'leastBytesOf' | 'limits'>,
): ToldPlan | undefined {
  const untold = LEVERS.filter((lever) => permits(policy, lever))
    .map((lever) => untoldSettings(lever, values, surroundings))
    .filter((settings) => settings.length > 0);
  const planTelling = (told: readonly SettingName[]): readonly Combination[] => {
    const writable: Surroundings['writable'] = (setting, to, together) =>
      told.includes(setting) && !policy.keep.includes(setting) ? true : surroundings.writable(setting, to, together);
    const optionsOf = optionSource({ ...surroundings, writable }, () => true, stepSeconds);
    const { best } = searchPlan({ ...search, optionsOf }, (lever) => permits(policy, lever));
    return best ? [best] : [];
  };
  const byAll = untold.length > 0 ? planTelling(untold.flat()) : [];
  // What telling everything does not bring about, telling less does not.
  const byOne = byAll.length > 0 && untold.length > 1 ? untold.flatMap(planTelling).sort(compareCombinations) : [];
  const [plan] = byOne.length > 0 ? byOne : byAll;
  if (!plan) return undefined;
  const settings = changedSettings(values, plan.values)
    .map((name) => name as SettingName)
    .filter((name) => surroundings.writable(name, plan.values[name as keyof typeof plan.values]) !== true);
  return { plan, settings };
}
