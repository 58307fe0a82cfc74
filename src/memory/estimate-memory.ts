import { ok, type Result } from '../core/index.ts';
import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { type ReserveOfStep, reservedByStep } from './allocator/of-step.ts';
import { contextBytes, type DeviceFacts, workspaceBytes } from './device.ts';
import { devicePeak } from './device-peak.ts';
import type { MemoryEstimate } from './estimate.ts';
import { hostModelOf, hostRam } from './host-ram/index.ts';
import { imageCost } from './images.ts';
import { kernelAssumptions } from './packaged-kernels.ts';
import { lossSegmentBytes } from './reserved.ts';
import { type Sharding, shardedQuantisedBytes } from './sharding.ts';
import { type WalkedRun, walkRun } from './walk-run.ts';

/**
 * Peak device and host memory of one run. What cannot be estimated is an error with a code; nothing is guessed.
 * `device` narrows the part that does not belong to PyTorch. The allocations of two steps are played on a model of PyTorch's
 * caching allocator; `reserveOf` stands for another way to do that.
 */
export function estimateMemory(
  asked: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts = {},
  reserveOf: ReserveOfStep = reservedByStep,
): Result<MemoryEstimate> {
  const run = walkRun(asked, facts, device, { records: true });
  return run.ok ? ok(estimateOf(run.value, asked, facts, device, reserveOf)) : run;
}

/**
 * Device bytes that an estimate of the same run is never below: what is allocated at the peak, and the CUDA context. For
 * searches, as no allocator is played for it; errors as in `estimateMemory`.
 */
export function leastDeviceBytes(asked: PlanValues, facts: ModelFacts, device: DeviceFacts = {}): Result<number> {
  const run = walkRun(asked, facts, device, {});
  if (!run.ok) return run;
  const { step, sharding } = run.value;
  return ok(
    Math.round(step.timeline.highest().peak.bytes) +
      contextBytes(device, sharding.ranks, shardedQuantisedBytes(run.value.plan, sharding)).bytes,
  );
}

/** The estimate of a run that was walked. */
export function estimateOf(
  run: WalkedRun,
  asked: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts,
  reserveOf: ReserveOfStep = reservedByStep,
): MemoryEstimate {
  const { values, objective, sharding, plan, residents, step, totalParameters: total } = run;
  const { phase, peak } = step.timeline.highest();
  const images = imageCost(values, facts, plan);
  const spare = images ? images.trainedBytes + images.perImageBytes * values.perDeviceTrainBatchSize : 0;
  const { rowsPerRow } = objective;
  const reserve = reserveOf(run.input, step, {
    workspaceBytes: workspaceBytes(device),
    lossSegmentBytes: lossSegmentBytes(values, facts, rowsPerRow),
  });
  return {
    params: { total, trainable: plan.trainable },
    vram: {
      ...withSpare(
        devicePeak(values, facts, device, peak, sharding, rowsPerRow, reserve, shardedQuantisedBytes(plan, sharding)),
        spare,
      ),
      peakPhase: phase,
    },
    ram: hostRam({
      values,
      plan,
      residents,
      sharding,
      model: { ...hostModelOf(values, facts, plan, rowsPerRow), parameters: total },
    }),
    assumptions: [
      ...kernelAssumptions(facts.assumptions, values.versions),
      ...(values.attnImplementation === asked.attnImplementation
        ? []
        : [`${facts.modelType} has no sdpa attention: transformers takes eager`]),
      ...assumptionsOf(values, facts, sharding),
      ...(images?.assumptions ?? []),
    ],
  };
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

function assumptionsOf(values: PlanValues, facts: ModelFacts, sharding: Sharding): string[] {
  const list = ['every row is max_length tokens long'];
  if (values.attnImplementation === 'sdpa') list.push('attention gets a mask, as for padded or packed rows');
  if (values.objective === 'seq2seq' && !values.maxTargetLength) {
    list.push('targets are as long as sources, max_length tokens');
  }
  if (sharding.accumulatesWhole && values.gradientAccumulationSteps > 1 && values.method === 'full') {
    list.push(
      'FSDP reduces gradients after the last micro batch alone and keeps whole ones until then (no sync_each_batch)',
    );
  }
  if (values.objective === 'classification') {
    list.push(`rows get one of ${facts.labels} labels, as the model config says`);
  }
  if (values.generation && values.generation.engine === 'transformers') {
    list.push('completions of a whole step are generated at once, each of max_completion_length tokens');
  }
  if (values.torchCompile)
    list.push('torch.compile is taken to recompute norms, rotary embeddings and gates, and to leave the rest as it is');
  if (values.eval) list.push('evaluation keeps no logits: there is no compute_metrics');
  if (values.quantization?.quantType === 'int8') list.push('8-bit layers are taken without outliers');
  if (sharding.engine !== 'none') list.push('communication buffers have the default sizes of their engine');
  return list;
}
