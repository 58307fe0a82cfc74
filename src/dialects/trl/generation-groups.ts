import type { SettingName, TrainingSpec } from '../../spec/index.ts';
import type { Written } from '../dialect.ts';
import { toInteger } from '../hf-argparser/convert.ts';
import type { Values } from '../hf-argparser/values.ts';
import { cannot } from '../hf-argparser/written.ts';

/**
 * Trainers that generate take only batches of whole groups of completions: what a batch setting may not become, else undefined.
 * Without keys of its own the group spans the whole optimizer step, which a plan keeps. Source: trl/trainer/grpo_config.py,
 * rloo_config.py `__post_init__`.
 */
export function brokenGroups(
  values: Values,
  spec: TrainingSpec,
  setting: SettingName,
  to: unknown,
): Written | undefined {
  const groups = spec.generation?.value?.numGenerations;
  if (!groups || typeof to !== 'number') return undefined;
  const { nodes = 1, processesPerNode = 1 } = spec.distributed?.value ?? {};
  const rows = to * nodes * processesPerNode;
  if (setting === 'perDeviceEvalBatchSize') {
    const own = numberOf(values, 'num_generations_eval') ?? groups;
    return spec.eval?.value && rows % own !== 0
      ? cannot(`an evaluation batch of ${rows} rows is no whole number of groups of ${own} completions`)
      : undefined;
  }
  if (setting !== 'perDeviceTrainBatchSize') return undefined;
  const steps = numberOf(values, 'steps_per_generation');
  if (steps !== undefined && (rows * steps) % groups !== 0) {
    return cannot(`${steps} passes of ${rows} rows are no whole number of groups of ${groups} completions`);
  }
  const whole = numberOf(values, 'generation_batch_size');
  return whole !== undefined && whole % rows !== 0
    ? cannot(`generation_batch_size ${whole} is no multiple of ${rows} rows`)
    : undefined;
}

function numberOf(values: Values, key: string): number | undefined {
  const found = values.find(key);
  const read = found && toInteger(1)(found.raw);
  return read?.ok ? read.value : undefined;
}
