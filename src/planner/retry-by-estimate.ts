import type { LeverClass } from '../spec/index.ts';
import { applyPicks, type Combination, type OptionsOf } from './combination.ts';
import { LEVERS, type Lever } from './levers/index.ts';
import { movesPhase, planOf, type RetryContext } from './retry-context.ts';
import { searchPlan } from './search.ts';

/** Without a known card the next attempt must be predicted this much smaller. */
const UNKNOWN_CARD = 0.85;

/**
 * The best plan, from the original settings, that is predicted smaller than the attempt that failed and fits after the
 * prediction is scaled by what the failure showed. Levers that do not move the phase that failed stay where the failed attempt had
 * them. `holding`: levers that break a checkpoint stay where it was written.
 */
export function smallerByEstimate(
  context: RetryContext,
  allow: readonly LeverClass[],
  holding: boolean,
): Combination | undefined {
  const { request, failed, checkpointPicks, factor, usableBytes, estimateOf } = context;
  if (!failed.estimate || !factor) return undefined;
  const predicted = failed.estimate.vram.devicePeakBytes;
  const fitting = usableBytes === undefined ? predicted * UNKNOWN_CARD : usableBytes / factor;
  const held = (lever: Lever): boolean => holding && !lever.survivesCheckpoint;
  const fixed = LEVERS.map((lever, position) => {
    if (held(lever)) return checkpointPicks[position]!;
    return movesPhase(lever, context) ? 0 : failed.picks[position]!;
  });
  const free = (lever: Lever): boolean => movesPhase(lever, context) && !held(lever);
  const optionsOf: OptionsOf = (lever, values) => (free(lever) ? context.optionsOf(lever, values) : []);
  const base = applyPicks(request.values, fixed, context.optionsOf);
  const { best } = searchPlan(
    {
      values: base.values,
      optionsOf,
      estimateOf,
      limits: {
        deviceBytes: Math.min(Math.floor(fitting), predicted - 1),
        hostBytes: request.surroundings.hostRamBytes,
      },
      excluded: context.triedAlready,
    },
    allow,
  );
  if (!best) return undefined;
  return planOf(
    fixed.map((option, position) => best.picks[position]! || option),
    context,
  );
}
