import type { PlanValues } from '../spec/index.ts';
import { findOptimizer } from './optimizers/index.ts';
import { type OptimizerSettings, optimizerArguments } from './optimizers/optimizer.ts';
import { dtypeCode, Parameter, type ParameterGroup, type ParameterPlan } from './parameters.ts';
import {
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
  const trainable = plan.groups.filter((group) => group.parameter.trainable && !plan.idle.has(group));
  const family = findOptimizer(values.optim)!;
  const stepped = sharding.masterWeights || sharding.storesFp32 ? asFp32(trainable) : trainable;
  const cost = family.cost(stepped, optimizerSettings(values));
  const offloaded = values.distributed.offload;
  const onDevice = !offloaded.includes('optimizer');
  const inBackward = family.updateBytes !== undefined || values.optimizerInBackward === true;
  const gradients = inBackward ? 0 : shardedGradientBytes(trainable, sharding);
  const weightBytes = shardedWeightBytes(plan, sharding, values.dtype);
  const communication = communicationBytes(plan, sharding, gradients);
  return {
    weightBytes: offloaded.includes('parameters') ? 0 : weightBytes,
    gradientBytes: onDevice ? gradients : 0,
    gradientShare: onDevice && !inBackward ? sharding.gradientShare : 0,
    communicationBytes: communication,
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

/** What the launch says about its optimizer beside its name. */
export const optimizerSettings = (values: PlanValues): OptimizerSettings => ({
  args: optimizerArguments(values.optimArgs),
  targetModules: values.optimTargetModules,
});

/** The same tensors in fp32. */
export const asFp32 = (groups: readonly ParameterGroup[]): ParameterGroup[] =>
  groups.map(({ parameter, count, ...group }) => ({
    ...group,
    parameter: new Parameter(parameter.rows, parameter.columns, dtypeCode('fp32'), true),
    count,
  }));
