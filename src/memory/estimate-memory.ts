import { error, fail, ok, type Result } from '../core/index.ts';
import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { DeviceFacts } from './device.ts';
import { contextBytes } from './device.ts';
import { type MemoryEstimate, TERM_NAMES, type TermName } from './estimate.ts';
import { findOptimizer } from './optimizers/index.ts';
import { planParameters } from './parameters.ts';
import { reservedFrom } from './reserved.ts';
import { walkStep } from './walk/step.ts';

/**
 * Peak device and host memory of one run. What cannot be estimated is an error with a code; nothing is guessed.
 * `device` narrows the part that does not belong to PyTorch.
 */
export function estimateMemory(
  values: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts = {},
): Result<MemoryEstimate> {
  const family = findOptimizer(values.optim);
  if (!family) return fail(error('unsupported-optimizer', `optimizer ${values.optim} cannot be estimated`));
  const plan = planParameters(facts.description, values);
  const optimizer = family.cost(plan.groups.filter((group) => group.parameter.trainable));
  const step = walkStep({
    description: facts.description,
    values,
    plan,
    optimizer,
    batch: values.perDeviceTrainBatchSize,
    tokens: values.maxLength,
  });
  const { phase: peakPhase, peak } = step.timeline.highest();
  const reserved = reservedFrom(peak.bytes);
  const context = contextBytes(device);
  const terms = Object.fromEntries(TERM_NAMES.map((name, index) => [name, Math.round(peak.owners[index]!)])) as Record<
    TermName,
    number
  >;
  terms.fragmentation = reserved - peak.bytes;
  terms.cudaContext = context.bytes;
  const devicePeakBytes = reserved + context.bytes;
  return ok({
    params: { total: facts.parameters, trainable: plan.trainable },
    vram: {
      allocatedPeakBytes: peak.bytes,
      reservedPeakBytes: reserved,
      devicePeakBytes,
      lowBytes: peak.bytes + context.lowBytes,
      highBytes: Math.round(devicePeakBytes * 1.05) + context.highBytes - context.bytes,
      peakPhase,
      terms,
    },
    ram: { peakBytes: 0, terms: {} },
    assumptions: [...facts.assumptions],
  });
}
