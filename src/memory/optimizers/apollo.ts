import type { ParameterGroup } from '../parameters.ts';
import { F32 } from '../tape/tape.ts';
import { bytesLike, isProjected, projectionOf, svdBytes, svdProjectionBytes } from './low-rank.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { largest, loopTemporary } from './shared.ts';

/**
 * APOLLOAdamW: moments of the projected gradient, the projection itself, and a gradient of full size scaled by what they
 * say, twice for a moment (the norm-growth limiter divides it). Random projections unless `optim_args` says `proj=svd`.
 */
const plain: OptimizerFamily = {
  names: ['apollo_adamw'],
  source: 'apollo_torch 1.0.3 apollo.py, random_projector.py; transformers 5.17 trainer_optimizer.py',
  formula: 'projected weights: two moments of rank × the longer side and one projection; all others: two moments',
  cost: (groups, settings) => {
    const whole = ({ parameter }: ParameterGroup): number => parameter.bytes;
    const low = (group: ParameterGroup): number => bytesLike(group, projectionOf(group, settings).lowRank);
    const bySvd = settings.args.get('proj') === 'svd';
    let statesBytes = 0;
    const projected: ParameterGroup[] = [];
    const others: ParameterGroup[] = [];
    for (const group of groups) {
      if (isProjected(group, settings)) {
        projected.push(group);
        const projection =
          bySvd && group.parameter.dtype === F32
            ? svdProjectionBytes(group, settings, true)
            : bytesLike(group, projectionOf(group, settings).matrix);
        statesBytes += group.count * (2 * low(group) + projection);
      } else {
        others.push(group);
        statesBytes += group.count * 2 * whole(group);
      }
    }
    return {
      statesBytes,
      temporaryBytes: Math.max(
        loopTemporary(others, (group) => 2 * whole(group), whole),
        loopTemporary(
          projected,
          (group) => whole(group) + 2 * low(group),
          (group) => 2 * whole(group) + low(group),
        ),
        bySvd ? largest(projected, svdBytes) : 0,
      ),
      hostBytes: 0,
    };
  },
};

export const apollo: readonly OptimizerFamily[] = [
  plain,
  {
    ...plain,
    names: ['apollo_adamw_layerwise'],
    formula: `${plain.formula}; each gradient ends as soon as its tensor is updated, in the backward pass`,
    cost: (groups, settings) => ({ ...plain.cost(groups, settings), temporaryBytes: 0 }),
    updateBytes: (parameter) => 2 * parameter.bytes,
  },
];
