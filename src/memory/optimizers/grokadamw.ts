import type { OptimizerFamily } from './optimizer.ts';
import { loopTemporary, tensorsLike } from './shared.ts';

/**
 * GrokAdamW: three states that live on the host and visit the device tensor by tensor; the boosted gradient beside them, and
 * the names of the last tensor's until they are bound again.
 */
export const grokAdamw: OptimizerFamily = {
  names: ['grokadamw'],
  source: 'grokadamw 0.1.2 grokadamw.py _update_group',
  formula: 'no states on the device; six tensors of one weight’s size while it is updated',
  cost: (groups) => ({
    statesBytes: 0,
    temporaryBytes: Math.max(
      loopTemporary(
        groups,
        ({ parameter }) => 4 * parameter.bytes,
        ({ parameter }) => 2 * parameter.bytes,
      ),
      loopTemporary(
        groups,
        ({ parameter }) => parameter.bytes,
        ({ parameter }) => 5 * parameter.bytes,
      ),
    ),
    hostBytes: tensorsLike(groups, 3),
  }),
};
