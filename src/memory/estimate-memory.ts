import { fail, ok, type Result } from '../core/index.ts';
import { classifierOps, countScoringParameters, type ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { simulatedReserve } from './allocator/of-step.ts';
import { checkPlan, checkTargets } from './check-plan.ts';
import type { DeviceFacts } from './device.ts';
import { devicePeak } from './device-peak.ts';
import type { MemoryEstimate } from './estimate.ts';
import { hostModelOf, hostRam } from './host-ram/index.ts';
import { imageCost } from './images.ts';
import { engineBytes, objectiveShape } from './objective.ts';
import { planParameters } from './parameters.ts';
import { residentsOf } from './residents.ts';
import { type Sharding, shardingOf } from './sharding.ts';
import { type StepInput, walkStep } from './walk/step.ts';

/**
 * Peak device and host memory of one run. What cannot be estimated is an error with a code; nothing is guessed.
 * `device` narrows the part that does not belong to PyTorch. `simulated` plays every allocation of two steps on a model of
 * PyTorch's caching allocator (milliseconds); `summed` estimates what it wastes by a formula (a tenth of that), for searches.
 */
export function estimateMemory(
  asked: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts = {},
  allocator: 'summed' | 'simulated' = 'summed',
): Result<MemoryEstimate> {
  const values = withKernel(asked, facts);
  const objective = objectiveShape(values);
  const problems = checkPlan(values, facts);
  if ('code' in objective) problems.push(objective);
  const engine = engineBytes(values, device);
  if (typeof engine !== 'number') problems.push(engine);
  if (problems.length > 0 || 'code' in objective || typeof engine !== 'number') return fail(...problems);

  const sharding = shardingOf(values);
  const computed = sharding.computeDtype === values.dtype ? values : { ...values, dtype: sharding.computeDtype };
  const { description } = facts;
  const pooled = objective.loss === 'pooled';
  const labels = values.objective === 'reward' ? 1 : facts.labels;
  const scoring = pooled ? classifierOps(description, labels) : undefined;
  const plan = planParameters(description, computed, scoring);
  const unmatched = checkTargets(values, plan, facts);
  if (unmatched.length > 0) return fail(...unmatched);

  const residents = residentsOf(values, plan, sharding, objective.referenceWeights && values.method === 'full');
  const input: StepInput = {
    description,
    values: activationOffload(computed),
    plan,
    residents,
    objective,
    engineBytes: engine,
    records: allocator === 'simulated',
    cuda: device.computeCapability !== undefined,
    holdsInputs: sharding.holdsInputs,
    scoring,
  };
  const step = walkStep(input);
  const { phase, peak } = step.timeline.highest();
  const total = pooled ? countScoringParameters(description, labels) : facts.parameters;
  const images = imageCost(values, facts, plan);
  const spare = images ? images.trainedBytes + images.perImageBytes * values.perDeviceTrainBatchSize : 0;
  return ok({
    params: { total, trainable: plan.trainable },
    vram: {
      ...withSpare(
        devicePeak(values, facts, device, peak, sharding, objective.rowsPerRow, simulatedReserve(input, step)),
        spare,
      ),
      peakPhase: phase,
    },
    ram: hostRam({
      values,
      plan,
      residents,
      sharding,
      model: { ...hostModelOf(values, facts, plan, objective.rowsPerRow), parameters: total },
    }),
    assumptions: [
      ...facts.assumptions,
      ...(values === asked ? [] : [`${facts.modelType} has no sdpa attention: transformers takes eager`]),
      ...assumptionsOf(values, facts, sharding),
      ...(images?.assumptions ?? []),
    ],
  });
}

/** The upper ends moved by what rows may bring that no setting tells. */
function withSpare<T extends Pick<MemoryEstimate['vram'], 'highBytes' | 'intervals'>>(vram: T, spare: number): T {
  if (spare === 0) return vram;
  const wider = { ...vram, highBytes: vram.highBytes + spare };
  if (!vram.intervals) return wider;
  const { allocated, reserved } = vram.intervals;
  return {
    ...wider,
    intervals: {
      allocated: { ...allocated, highBytes: allocated.highBytes + spare },
      reserved: { ...reserved, highBytes: reserved.highBytes + spare },
    },
  };
}

/** Where a model has no sdpa implementation transformers takes eager, unless sdpa is asked for by name: then it raises. */
function withKernel(values: PlanValues, { description: { kernels } }: ModelFacts): PlanValues {
  if (values.attnImplementation !== 'sdpa' || !kernels || kernels.includes('sdpa')) return values;
  return { ...values, attnImplementation: 'eager' };
}

/** `offload: activations` is checkpointing whose boundaries live on the host. */
function activationOffload(values: PlanValues): PlanValues {
  if (!values.distributed.offload.includes('activations') || !values.gradientCheckpointing.enabled) return values;
  return { ...values, gradientCheckpointing: { ...values.gradientCheckpointing, offload: true } };
}

function assumptionsOf(values: PlanValues, facts: ModelFacts, sharding: Sharding): string[] {
  const list = ['every row is max_length tokens long'];
  if (values.attnImplementation === 'sdpa') list.push('attention gets a mask, as for padded or packed rows');
  if (values.objective === 'seq2seq' && !values.maxTargetLength) {
    list.push('targets are as long as sources, max_length tokens');
  }
  if (values.objective === 'classification') {
    list.push(`rows get one of ${facts.labels} labels, as the model config says`);
  }
  if (values.generation && values.generation.engine === 'transformers') {
    list.push('completions of a whole step are generated at once, each of max_completion_length tokens');
  }
  if (values.eval) list.push('evaluation keeps no logits: there is no compute_metrics');
  if (values.quantization?.bits === 8) list.push('8-bit layers are taken like 4-bit ones, without outliers');
  if (sharding.engine !== 'none') list.push('communication buffers have the default sizes of their engine');
  return list;
}
