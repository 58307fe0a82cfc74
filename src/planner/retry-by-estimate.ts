import { calibratedNeed } from './calibrate.ts';
import { applyPicks, type Combination, type OptionsOf } from './combination.ts';
import { LEVERS, type Lever } from './levers/index.ts';
import { movesPhase, planOf, type RetryContext } from './retry-context.ts';
import { type EstimateOf, searchPlan } from './search.ts';

/** Without a known card the next attempt must be predicted this much smaller. */
const UNKNOWN_CARD = 0.85;

/** What is not sure to fit is worth the time of an attempt only when it is smaller by more than a prediction's own error. */
const WORTH_A_TRY = 0.9;

/** A smaller attempt; `sure`: it fits by the failure's own numbers, else it is only the smallest there is. */
export interface SmallerPlan {
  readonly plan: Combination;
  readonly sure: boolean;
}

/**
 * The best plan, from the original settings, that is predicted smaller than the attempt that failed and fits after the
 * prediction is scaled by what the failure showed; where none does, the smallest. Levers that do not move the phase that failed
 * stay where the failed attempt had them. `holding`: levers that break a checkpoint stay where it was written.
 */
export function smallerByEstimate(
  context: RetryContext,
  permitted: (lever: Lever) => boolean,
  holding: boolean,
): SmallerPlan | undefined {
  const { request, failed, checkpointPicks, factor, usableBytes } = context;
  if (!failed.estimate || !factor) return undefined;
  const needed = calibratedNeed(failed.estimate, factor);
  const fitting = usableBytes ?? needed * UNKNOWN_CARD;
  /** The search looks at the device peak, so it is shown the one the failure makes likely. */
  const estimateOf: EstimateOf = (values) => {
    const estimate = context.estimateOf(values);
    return estimate && { ...estimate, vram: { ...estimate.vram, devicePeakBytes: calibratedNeed(estimate, factor) } };
  };
  const held = (lever: Lever): boolean => holding && !lever.survivesCheckpoint;
  const fixed = LEVERS.map((lever, position) => {
    if (held(lever)) return checkpointPicks[position]!;
    return movesPhase(lever, context) ? 0 : failed.picks[position]!;
  });
  const free = (lever: Lever): boolean => movesPhase(lever, context) && !held(lever);
  const optionsOf: OptionsOf = (lever, values) => (free(lever) ? context.optionsOf(lever, values) : []);
  const base = applyPicks(request.values, fixed, context.optionsOf);
  const { best, smallest } = searchPlan(
    {
      values: base.values,
      optionsOf,
      estimateOf,
      // Tensors are scaled by at least 1, so the bound holds for what is calibrated too.
      ...context.bound,
      limits: {
        deviceBytes: Math.min(Math.floor(fitting), needed - 1),
        hostBytes: request.surroundings.hostRamBytes,
      },
      excluded: context.triedAlready,
    },
    permitted,
  );
  const found = best ?? smallest();
  const plan = planOf(
    fixed.map((option, position) => found.picks[position]! || option),
    context,
  );
  if (best) return { plan, sure: true };
  const least = estimateOf(plan.values)?.vram.devicePeakBytes ?? Number.POSITIVE_INFINITY;
  return least < needed * WORTH_A_TRY && !context.triedAlready(plan.values) ? { plan, sure: false } : undefined;
}
