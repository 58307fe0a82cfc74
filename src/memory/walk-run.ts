import { type Diagnostic, fail, ok, type Result } from '../core/index.ts';
import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { checkPlan, checkTargets } from './check-plan.ts';
import type { DeviceFacts } from './device.ts';
import { engineBytes, type ObjectiveShape, objectiveShape } from './objective.ts';
import type { ParameterPlan } from './parameters.ts';
import { parametersOfRun } from './parameters-of-run.ts';
import { hasExpandableSegments } from './reserved.ts';
import { residentsOf } from './residents.ts';
import { type Sharding, shardingOf } from './sharding.ts';
import { type Residents, type StepInput, type StepResult, walkStep } from './walk/step.ts';

/** One run walked through: what the estimate is made of, and what an explanation is made of. */
export interface WalkedRun {
  /** As they hold for this model: the attention that it has. */
  readonly values: PlanValues;
  readonly objective: ObjectiveShape;
  readonly sharding: Sharding;
  readonly plan: ParameterPlan;
  readonly residents: Residents;
  readonly input: StepInput;
  readonly step: StepResult;
  /** Parameters of the model with the head of this objective. */
  readonly totalParameters: number;
}

/**
 * Checks a plan and walks one step of it. `records`: allocations are kept in their order for the allocator; `explains`: every
 * stretch of the step is kept for an explanation.
 */
export function walkRun(
  asked: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts,
  { records = false, explains = false }: { readonly records?: boolean; readonly explains?: boolean },
): Result<WalkedRun> {
  const values = withStoredBase(withKernel(asked, facts), facts);
  const objective = objectiveShape(values);
  const problems: Diagnostic[] = checkPlan(values, facts);
  if ('code' in objective) problems.push(objective);
  const engine = engineBytes(values, device);
  if (typeof engine !== 'number') problems.push(engine);
  if (problems.length > 0 || 'code' in objective || typeof engine !== 'number') return fail(...problems);

  const sharding = shardingOf(values);
  const computed = sharding.computeDtype === values.dtype ? values : { ...values, dtype: sharding.computeDtype };
  const { description } = facts;
  const pooled = objective.loss === 'pooled';
  const labels = values.objective === 'reward' ? 1 : facts.labels;
  const { plan, scoring, scoringTotal } = parametersOfRun(description, computed, pooled ? labels : undefined);
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
    cuda: device.computeCapability !== undefined,
    records: records && !hasExpandableSegments(values.allocatorConf),
    explains,
    holdsInputs: sharding.holdsInputs,
    shards:
      sharding.engine === 'fsdp' && sharding.weightShare < 1
        ? { share: sharding.weightShare, storesFp32: sharding.storesFp32 }
        : undefined,
    scoring,
  };
  const step = walkStep(input);
  const totalParameters = scoringTotal ?? facts.parameters;
  return ok({ values, objective, sharding, plan, residents, input, step, totalParameters });
}

/** What a checkpoint is stored in holds, whatever a launch asks for (transformers quantizers/auto.py `merge_quantization_configs`). */
function withStoredBase(values: PlanValues, { stored }: ModelFacts): PlanValues {
  if (!stored) return values;
  const { computeDtype = values.dtype, groupSize, ...form } = stored;
  const upcastRestToFp32 = values.quantization?.upcastRestToFp32 ?? false;
  const group = groupSize === undefined ? {} : { groupSize };
  return { ...values, quantization: { ...form, ...group, computeDtype, upcastRestToFp32 } };
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
