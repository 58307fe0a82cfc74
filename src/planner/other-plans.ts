import { type Combination, compareCombinations } from './combination.ts';
import type { Lever } from './levers/index.ts';
import { permits } from './permits.ts';
import type { Policy } from './plan.ts';
import { type SearchRequest, searchPlan } from './search.ts';

const leversOf = ({ steps }: Combination): readonly Lever[] => steps.map(({ lever }) => lever);

/**
 * Plans that fit beside the best one, best first: each is the best there is without some lever of a plan before it, so that they
 * differ in what they do and not by a little of the same.
 */
export function otherPlans(
  search: SearchRequest,
  best: Combination,
  policy: Pick<Policy, 'allow' | 'forbid'>,
  most: number,
): readonly Combination[] {
  const found: Combination[] = [best];
  const tried = new Set<string>();
  // Breadth first: without one lever of the best plan, then without two of them.
  let without: readonly (readonly string[])[] = most > 0 ? [[]] : [];
  while (without.length > 0 && found.length <= most) {
    const next: string[][] = [];
    for (const forbidden of without) {
      const key = [...forbidden].sort().join();
      if (tried.has(key)) continue;
      tried.add(key);
      const forbid = [...policy.forbid, ...forbidden];
      const plan =
        forbidden.length === 0
          ? best
          : searchPlan(search, (lever) => permits({ allow: policy.allow, forbid }, lever)).best;
      if (!plan) continue;
      if (!found.some(({ values }) => JSON.stringify(values) === JSON.stringify(plan.values))) found.push(plan);
      next.push(...leversOf(plan).map(({ id }) => [...forbidden, id]));
    }
    without = next.filter((forbidden) => forbidden.length <= 3);
  }
  return found.slice(1).sort(compareCombinations).slice(0, most);
}
