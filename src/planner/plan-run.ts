import type { Result } from '../core/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { specChanges } from './changes.ts';
import { applyPicks, type Combination, nothingMoved, optionSource } from './combination.ts';
import { planIfTold } from './if-told.ts';
import { availableOptions, untoldSettings } from './levers/availability.ts';
import { LEVERS } from './levers/index.ts';
import { otherPlans } from './other-plans.ts';
import { furtherClasses, keeping, permits } from './permits.ts';
import type { Plan, PlanRequest, Refusal } from './plan.ts';
import { type EstimateOf, type Limits, type SearchRequest, searchPlan } from './search.ts';

/** Remembers estimates, or bounds of them, by their values; a failed one counts as not usable. */
export function rememberEstimates<T>(
  estimate: (values: PlanValues) => Result<T>,
): (values: PlanValues) => T | undefined {
  const known = new Map<string, { readonly value: T | undefined }>();
  // The same plan comes again as the same object more often than as an equal one, and then needs no key.
  const seen = new WeakMap<PlanValues, { readonly value: T | undefined }>();
  return (values) => {
    const before = seen.get(values);
    if (before) return before.value;
    const key = JSON.stringify(values);
    const answer = known.get(key) ?? { value: valueOrNone(estimate(values)) };
    known.set(key, answer);
    seen.set(values, answer);
    return answer.value;
  };
}

const valueOrNone = <T>(result: Result<T>): T | undefined => (result.ok ? result.value : undefined);

/** Permitted levers that something outside the settings keeps away, each with the reason. */
const unavailableLevers = ({ values, surroundings, policy }: PlanRequest): Refusal['unavailable'] =>
  LEVERS.filter((lever) => permits(policy, lever)).flatMap((lever) => {
    const options = availableOptions(lever, values, surroundings);
    if (typeof options !== 'string') return [];
    const untold = untoldSettings(lever, values, surroundings);
    return [{ lever: lever.id, reason: options, ...(untold.length > 0 ? { untold } : {}) }];
  });

/**
 * What to do with a run on a card: leave it, change the least that makes it fit, or say why nothing does. The original values
 * must have an estimate (ask `estimate` first): a run that cannot be estimated cannot be planned.
 */
export function planRun(asked: PlanRequest): Plan {
  const { values, budget, policy } = asked;
  const surroundings = keeping(asked.surroundings, policy.keep);
  const request = { ...asked, surroundings };
  const estimateOf = rememberEstimates(request.estimate);
  const before = estimateOf(values);
  if (!before) throw new Error('planRun was given values that cannot be estimated');
  const optionsOf = optionSource(surroundings, () => true, request.stepSeconds);
  const wanted = applyPicks(
    values,
    LEVERS.map((lever) => (lever.required && permits(policy, lever) ? 1 : 0)),
    optionsOf,
  );
  // Settings that the card can run but nobody can estimate are left to the warning about the card.
  const repaired = estimateOf(wanted.values) ? wanted : nothingMoved(values);
  const start = estimateOf(repaired.values) ?? before;
  if (repaired.steps.length === 0 && before.vram.devicePeakBytes <= budget.usableBytes) {
    return { verdict: 'fits', values, changes: [], before, estimate: before };
  }
  const limits: Limits = { deviceBytes: budget.usableBytes, hostBytes: surroundings.hostRamBytes };
  const search = { values: repaired.values, estimateOf, ...boundsOf(request), limits, optionsOf };
  const changesOf = (plan: Combination) => ({
    changes: specChanges(
      values,
      { ...plan, steps: [...repaired.steps, ...plan.steps] },
      estimateOf(plan.values),
      peakWith(estimateOf),
    ),
    estimate: estimateOf(plan.values) ?? before,
  });
  const nothingElse = nothingMoved(repaired.values);
  const { best, smallest } =
    start.vram.devicePeakBytes <= budget.usableBytes
      ? { best: nothingElse, smallest: () => nothingElse }
      : searchPlan(search, (lever) => permits(policy, lever));
  if (best) {
    const planned = (plan: Combination) => ({
      values: plan.values,
      stepFactor: repaired.factor * plan.factor,
      ...changesOf(plan),
    });
    const others = otherPlans(search, best, policy, asked.alternatives ?? 0);
    return {
      verdict: 'rewrite',
      before,
      ...planned(best),
      ...(asked.alternatives === undefined ? {} : { alternatives: others.map(planned) }),
    };
  }
  const wouldFit = furtherClasses(policy).flatMap((allow) => {
    const wider = searchPlan(
      search,
      (lever) => permits({ ...policy, allow: [...policy.allow, allow] }, lever),
      allow,
    ).best;
    return wider ? [{ allow, ...changesOf(wider) }] : [];
  });
  const least = changesOf(smallest());
  const told = planIfTold({ ...request, values: repaired.values }, search);
  const refusal: Refusal = {
    shortfallBytes: Math.max(0, least.estimate.vram.devicePeakBytes - budget.usableBytes),
    hostShortfallBytes: Math.max(
      0,
      least.estimate.ram.neededBytes - (surroundings.hostRamBytes ?? Number.POSITIVE_INFINITY),
    ),
    smallest: least,
    wouldFit,
    ...(told ? { ifTold: { settings: told.settings, ...changesOf(told.plan) } } : {}),
    unavailable: unavailableLevers(request),
  };
  return { verdict: 'refuse', values, changes: [], before, estimate: before, refusal };
}

/** What a search may look at before it asks for an estimate. */
export const boundsOf = ({
  leastBytes,
}: {
  readonly leastBytes?: PlanRequest['leastBytes'] | undefined;
}): Pick<SearchRequest, 'leastBytesOf'> => (leastBytes ? { leastBytesOf: rememberEstimates(leastBytes) } : {});

const peakWith =
  (estimateOf: EstimateOf) =>
  (values: PlanValues): number | undefined =>
    estimateOf(values)?.vram.devicePeakBytes;
