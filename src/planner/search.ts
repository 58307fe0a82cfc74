import type { MemoryEstimate } from '../memory/index.ts';
import { LEVER_CLASSES, type LeverClass, type PlanValues } from '../spec/index.ts';
import {
  allCombinations,
  altersTraining,
  applyPicks,
  atLeast,
  type Combination,
  compareCombinations,
  compareTiers,
  harmOf,
  type OptionsOf,
  type Step,
  worstClass,
} from './combination.ts';
import { LEVERS, type Lever } from './levers/index.ts';

/**
 * Most plans looked at in one search; past the limit the best plan found so far is relaxed lever by lever instead of proven
 * best. Most of them are too big by a bound that costs a fraction of an estimate.
 */
const MOST_ESTIMATES = 150;

/**
 * The allocator's holes are not even: a plan that pulls a lever further can reserve a little more. What is too big by less than this
 * rules out nothing else.
 */
const UNEVEN = 1.03;

/** The lever with the most options. */
const FINEST = LEVERS.findIndex(({ id }) => id === 'micro-batch');

/** What a plan must keep to, bytes. */
export interface Limits {
  readonly deviceBytes: number;
  /** undefined: not known, not checked. */
  readonly hostBytes: number | undefined;
}

/** An estimator that remembers; undefined: these values cannot be estimated. */
export type EstimateOf = (values: PlanValues) => MemoryEstimate | undefined;

export interface SearchRequest {
  readonly values: PlanValues;
  readonly optionsOf: OptionsOf;
  readonly estimateOf: EstimateOf;
  /** Device bytes that an estimate is never below, cheaper than it; undefined: not known. */
  readonly leastBytesOf?: (values: PlanValues) => number | undefined;
  readonly limits: Limits;
  /** Plans that may not be the answer though they fit (attempts that failed). */
  readonly excluded?: (values: PlanValues) => boolean;
}

export interface SearchOutcome {
  /** The best plan that fits. */
  readonly best: Combination | undefined;
  /** The smallest plan, looked for when it is asked for; the same as `best` only by chance. */
  readonly smallest: () => Combination;
}

/** Bytes above the limits, device and host together; infinite where there is no estimate. */
function overflow(estimate: MemoryEstimate | undefined, { deviceBytes, hostBytes }: Limits): number {
  if (!estimate) return Number.POSITIVE_INFINITY;
  const host = hostBytes === undefined ? 0 : Math.max(0, estimate.ram.neededBytes - hostBytes);
  return Math.max(0, estimate.vram.devicePeakBytes - deviceBytes) + host;
}

/** How large a plan is: bytes above the limits, then its device peak. */
type Size = readonly [over: number, peak: number];

const sizeByEstimate = ({ estimateOf, limits }: SearchRequest, { values }: Combination): Size => {
  const estimate = estimateOf(values);
  return [overflow(estimate, limits), estimate?.vram.devicePeakBytes ?? Number.POSITIVE_INFINITY];
};

/** Never above the size by the estimate. */
const sizeByBound = ({ leastBytesOf, limits }: SearchRequest, { values }: Combination): Size => {
  const least = leastBytesOf?.(values) ?? 0;
  return [Math.max(0, least - limits.deviceBytes), least];
};

const isSmaller = ([over, peak]: Size, [otherOver, otherPeak]: Size): boolean =>
  over < otherOver || (over === otherOver && peak < otherPeak);

/**
 * All levers as far as they go, then each let go where that needs less: levers seldom work against each other, but some do. A plan
 * that its bound alone shows to be no smaller is not measured.
 */
function smallestCombination(request: SearchRequest, measure = sizeByEstimate): Combination {
  const { values, optionsOf } = request;
  let best = applyPicks(
    values,
    LEVERS.map(() => Number.POSITIVE_INFINITY),
    optionsOf,
  );
  let size = measure(request, best);
  for (const { position } of [...best.steps]) {
    const candidate = applyPicks(values, best.picks.with(position, 0), optionsOf);
    if (!isSmaller(sizeByBound(request, candidate), size)) continue;
    const candidateSize = measure(request, candidate);
    if (isSmaller(candidateSize, size)) {
      best = candidate;
      size = candidateSize;
    }
  }
  return best;
}

/** Lets go of whatever a plan does not need, lever by lever, the costliest first. */
function relax(plan: Combination, fits: (candidate: Combination) => boolean, request: SearchRequest): Combination {
  const costliestFirst = [...plan.steps].sort((a, b) => b.cost.factor - a.cost.factor);
  return costliestFirst.reduce((kept, { position, option }) => {
    for (let milder = 0; milder < option; milder += 1) {
      const candidate = applyPicks(request.values, kept.picks.with(position, milder), request.optionsOf);
      if (fits(candidate)) return candidate;
    }
    return kept;
  }, plan);
}

/** Groups a sorted list into runs of equal meaning and speed. */
function tiersOf(sorted: readonly Combination[]): readonly (readonly Combination[])[] {
  const tiers: Combination[][] = [];
  for (const combination of sorted) {
    const last = tiers.at(-1);
    if (last && compareTiers(last[0]!, combination) === 0) last.push(combination);
    else tiers.push([combination]);
  }
  return tiers;
}

/** Levers that change neither the speed nor what is trained: pulled or not, a plan stays in its tier. */
const costsNothing = ({ lever, cost }: Step): boolean => cost.factor === 1 && !altersTraining(lever);

/**
 * The best plan of one class. First the levers that cost something are searched in order of their price with all the others
 * pulled as in `smallest`; then, in the first tier that fits, as many of the others as possible are let go. A plan
 * that needs too much rules out every plan that pulls no lever further. `smallest` fits, and is relaxed when the estimates run out.
 */
function bestOfClass(leverClass: LeverClass, smallest: Combination, request: SearchRequest): Combination | undefined {
  const { values, optionsOf, estimateOf, leastBytesOf, limits, excluded } = request;
  const tooBig: Combination[] = [];
  let spent = 0;
  const provenTooBig = ({ values: at }: Combination): boolean => (leastBytesOf?.(at) ?? 0) > limits.deviceBytes;
  const fits = (candidate: Combination): boolean => {
    spent += 1;
    const estimate = provenTooBig(candidate) ? undefined : estimateOf(candidate.values);
    if (!estimate || estimate.vram.devicePeakBytes > limits.deviceBytes * UNEVEN) tooBig.push(candidate);
    return overflow(estimate, limits) === 0 && !excluded?.(candidate.values);
  };
  const alive = (candidate: Combination): boolean => !tooBig.some((failed) => atLeast(failed, candidate));
  const relaxed = (plan: Combination): Combination | undefined =>
    excluded?.(plan.values) ? undefined : relax(plan, fits, request);

  const idle = new Map(
    smallest.steps.filter(costsNothing).map(({ lever, position }) => [lever, smallest.picks[position]!]),
  );
  const paid = allCombinations(values, optionsOf, idle)
    .filter((candidate) => candidate.steps.length > 0 && worstClass(candidate) === leverClass)
    .sort(compareTiers);

  // What is too big with the smallest micro batch is too big with any: one estimate rules out the whole group.
  const couldFit = (candidate: Combination): boolean => {
    if (candidate.picks[FINEST] === smallest.picks[FINEST]) return true;
    const floor = applyPicks(values, candidate.picks.with(FINEST, smallest.picks[FINEST]!), optionsOf);
    return alive(floor) && ((!provenTooBig(floor) && overflow(estimateOf(floor.values), limits) === 0) || fits(floor));
  };
  for (const tier of tiersOf(paid)) {
    const fitting = tier.filter((candidate) => alive(candidate) && couldFit(candidate) && fits(candidate));
    if (spent > MOST_ESTIMATES) return relaxed(fitting[0] ?? smallest);
    // A plan that was tried already still fits; some lever more or less makes it another one.
    const open = tier.filter(
      (candidate) => !provenTooBig(candidate) && overflow(estimateOf(candidate.values), limits) === 0,
    );
    const leaner = open.flatMap((plan) => letGo(plan, values, optionsOf)).sort(compareCombinations);
    // With one lever let go at a time the indispensable ones show, and everything without them is ruled out at once.
    for (const plan of leaner.filter((one) => open.some((all) => all.steps.length === one.steps.length + 1))) {
      if (spent <= MOST_ESTIMATES) fits(plan);
    }
    for (const plan of leaner) {
      if (spent > MOST_ESTIMATES) return relaxed(fitting[0] ?? smallest);
      if (alive(plan) && fits(plan)) return plan;
    }
  }
  return relaxed(smallest);
}

/** A plan with every choice of the levers that cost nothing, itself included. */
const letGo = (plan: Combination, values: PlanValues, optionsOf: OptionsOf): readonly Combination[] =>
  plan.steps
    .filter(costsNothing)
    .reduce<readonly Combination[]>(
      (plans, { position, option }) =>
        plans.flatMap((one) =>
          Array.from({ length: option + 1 }, (_, milder) =>
            applyPicks(values, one.picks.with(position, milder), optionsOf),
          ),
        ),
      [plan],
    );

/**
 * Searches all permitted levers together, class by class from the mildest: as soon as the levers up to a class can make the
 * run fit, no worse class is looked at. `from`: the mildest class looked at, where milder ones are known not to fit.
 */
export function searchPlan(
  request: SearchRequest,
  permitted: (lever: Lever) => boolean,
  from: LeverClass = 'free',
): SearchOutcome {
  const classes = LEVER_CLASSES.filter((leverClass) =>
    LEVERS.some((lever) => lever.class === leverClass && permitted(lever)),
  );
  const upTo = (worst: LeverClass | undefined): SearchRequest => ({
    ...request,
    optionsOf: (lever, values) =>
      worst !== undefined && harmOf(lever.class) <= harmOf(worst) && permitted(lever)
        ? request.optionsOf(lever, values)
        : [],
  });
  for (const leverClass of classes.filter((one) => harmOf(one) >= harmOf(from))) {
    const within = upTo(leverClass);
    // The bound is asked first: what does not fit by it takes no estimate.
    const [least] = sizeByBound(within, smallestCombination(within, sizeByBound));
    if (least > 0) continue;
    const smallest = smallestCombination(within);
    if (overflow(request.estimateOf(smallest.values), request.limits) > 0) continue;
    const best = bestOfClass(leverClass, smallest, within);
    if (best) return { best, smallest: () => smallest };
  }
  const all = upTo(classes.at(-1));
  return { best: undefined, smallest: () => withoutIdle(smallestCombination(all), request) };
}

/** The same size with fewer changes: levers that save nothing here are let go. */
function withoutIdle(plan: Combination, request: SearchRequest): Combination {
  const { estimateOf, limits } = request;
  const estimate = estimateOf(plan.values);
  if (!estimate) return plan;
  const noLarger = (candidate: Combination): boolean => {
    const other = estimateOf(candidate.values);
    return (
      other !== undefined &&
      other.vram.devicePeakBytes <= estimate.vram.devicePeakBytes &&
      overflow(other, limits) <= overflow(estimate, limits)
    );
  };
  return relax(plan, noLarger, request);
}
