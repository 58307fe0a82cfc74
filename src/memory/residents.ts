import type { PlanValues } from '../spec/index.ts';
import { optimizerCost } from './optimizer-cost.ts';
import { findOptimizer } from './optimizers/index.ts';
import type { ParameterPlan } from './parameters.ts';
import {
  accumulatedBytes,
  awaitedBytes,
  communicationBytes,
  flatGradientBytes,
  gatheringOf,
  masterBytes,
  type Sharding,
  shardedGradientBytes,
  shardedWeightBytes,
} from './sharding.ts';
import type { Residents } from './walk/step.ts';

/** What one device holds outside the passes, after sharding and offloading. */
export function residentsOf(
  values: PlanValues,
  plan: ParameterPlan,
  sharding: Sharding,
  reference: boolean,
): Residents {
  const family = findOptimizer(values.optim)!;
  const cost = optimizerCost(plan, values, sharding.masterWeights || sharding.storesFp32);
  const offloaded = values.distributed.offload;
  const onDevice = !offloaded.includes('optimizer');
  const inBackward = family.updateBytes !== undefined || values.optimizerInBackward === true;
  const gradients = inBackward ? 0 : shardedGradientBytes(plan, sharding);
  const weightBytes = shardedWeightBytes(plan, sharding, values.dtype);
  const communication = communicationBytes(plan, sharding, gradients);
  return {
    weightBytes: offloaded.includes('parameters') ? 0 : weightBytes,
    gradientBytes: onDevice ? gradients : 0,
    accumulatedBytes:
      values.gradientAccumulationSteps > 1 && !inBackward && (onDevice || sharding.accumulatesWhole)
        ? accumulatedBytes(plan, sharding)
        : 0,
    gradientShare: onDevice && !inBackward ? sharding.gradientShare : 0,
    communicationBytes: communication,
    awaitedBytes: awaitedBytes(plan, sharding),
    gathering: gatheringOf(plan, sharding, values.distributed.strategy),
    lastingCommunicationBytes: sharding.engine === 'fsdp' ? 0 : communication,
    optimizer: {
      statesBytes: onDevice ? Math.ceil(cost.statesBytes * sharding.stateShare) + masterBytes(plan, sharding) : 0,
      temporaryBytes:
        onDevice && !inBackward
          ? Math.max(Math.ceil(cost.temporaryBytes * sharding.stateShare), flatGradientBytes(plan, sharding))
          : 0,
      hostBytes: cost.hostBytes,
    },
    referenceBytes: reference ? weightBytes : 0,
  };
}
