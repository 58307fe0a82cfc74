import type { FloatDType } from '../core/index.ts';
import { dataParallelSize, type PlanValues, type Strategy } from '../spec/index.ts';
import { dtypeCode, type ParameterPlan } from './parameters.ts';
import { F32, widthOf } from './tape/tape.ts';
import { versionFacts } from './versions.ts';

/**
 * How a run's states are spread over ranks, and what that costs in buffers. Sources: deepspeed/runtime/zero (stage_1_and_2,
 * stage3), torch/distributed/fsdp, accelerate/utils/fsdp_utils.py (trainable parameters become fp32 shards).
 */
export interface Sharding {
  readonly ranks: number;
  /** What a layer computes in: engines with mixed precision hand out 16-bit copies. */
  readonly computeDtype: FloatDType;
  readonly weightShare: number;
  readonly gradientShare: number;
  readonly stateShare: number;
  /** fp32 copies of the trainable weights beside the 16-bit ones. */
  readonly masterWeights: boolean;
  /** Trainable weights are stored in fp32 whatever they compute in. */
  readonly storesFp32: boolean;
  readonly engine: 'none' | 'ddp' | 'deepspeed' | 'fsdp';
  /**
   * FSDP 1 watches the inputs of frozen units to know when to reshard them (`register_multi_grad_hook`); its handles keep the
   * inputs of reentrant checkpoints, which are leaves, and with them their gradients, until the backward pass has ended.
   */
  readonly holdsInputs: boolean;
  /**
   * Gradients of earlier micro batches are whole: FSDP reduces nothing under `no_sync`, which accumulation runs under
   * (torch/distributed/fsdp/_runtime_utils.py `_post_backward_hook`, accelerate/accelerator.py `no_sync`).
   */
  readonly accumulatesWhole: boolean;
}

export function shardingOf(values: PlanValues): Sharding {
  const { strategy, processesPerNode } = values.distributed;
  const ranks = dataParallelSize(values.distributed);
  const mixed = values.mixedPrecision !== 'no';
  const computeDtype = mixed ? (values.mixedPrecision as FloatDType) : values.dtype;
  const plain: Sharding = {
    ranks,
    computeDtype: values.dtype,
    weightShare: 1,
    gradientShare: 1,
    stateShare: 1,
    masterWeights: false,
    storesFp32: false,
    holdsInputs: false,
    accumulatesWhole: false,
    engine: ranks > 1 && strategy !== 'none' && strategy !== 'dp' ? 'ddp' : 'none',
  };
  switch (strategy) {
    case 'none':
    case 'dp':
    case 'ddp':
      return plain;
    case 'zero1':
    case 'zero2':
    case 'zero3':
      return {
        ...plain,
        engine: 'deepspeed',
        computeDtype,
        masterWeights: computeDtype !== 'fp32',
        stateShare: 1 / ranks,
        gradientShare: strategy === 'zero1' ? 1 : 1 / ranks,
        weightShare: strategy === 'zero3' ? 1 / ranks : 1,
      };
    case 'fsdp1':
    case 'fsdp2':
    case 'hsdp': {
      const shards = strategy === 'hsdp' ? processesPerNode : ranks;
      return {
        ...plain,
        engine: 'fsdp',
        computeDtype,
        storesFp32: mixed,
        holdsInputs:
          strategy === 'fsdp1' &&
          values.method !== 'full' &&
          values.gradientCheckpointing.enabled &&
          values.gradientCheckpointing.useReentrant,
        accumulatesWhole:
          !values.syncsEachMicroBatch && (strategy !== 'fsdp2' || versionFacts(values.versions).unsyncedFsdp2),
        weightShare: 1 / shards,
        gradientShare: 1 / shards,
        stateShare: 1 / shards,
      };
    }
  }
}

/** Quantised weights of the whole model where FSDP has sharded them, bytes. */
export const shardedQuantisedBytes = (plan: ParameterPlan, { engine, weightShare }: Sharding): number =>
  engine === 'fsdp' && weightShare < 1 ? plan.quantisedBytes : 0;

/** Weights on one device, bytes; `plan` is in the compute dtype. */
export function shardedWeightBytes(plan: ParameterPlan, sharding: Sharding, storage: FloatDType): number {
  if (sharding.weightShare === 1) return plan.residentBytes;
  let total = plan.quantisedBytes;
  for (const { parameter, count } of plan.groups) {
    const fp32 = sharding.storesFp32 && parameter.trainable;
    const width = fp32 ? 4 : parameter.dtype === F32 ? 4 : widthOf(dtypeCode(storage));
    total += parameter.elements * width * count;
  }
  return Math.ceil(total * sharding.weightShare);
}

/** Gradients one device keeps until the optimizer step, bytes. */
export const shardedGradientBytes = ({ trained }: ParameterPlan, sharding: Sharding): number =>
  Math.ceil((sharding.storesFp32 ? trained.elements * 4 : trained.bytes) * sharding.gradientShare);

/** Gradients that earlier micro batches have left when the last one runs, bytes. */
export const accumulatedBytes = (plan: ParameterPlan, sharding: Sharding): number =>
  sharding.accumulatesWhole ? plan.trained.bytes : shardedGradientBytes(plan, sharding);

/** fp32 copies of the trainable weights, bytes per device. */
export const masterBytes = (plan: ParameterPlan, sharding: Sharding): number =>
  sharding.masterWeights ? Math.ceil(plan.trainable * 4 * sharding.stateShare) : 0;

/** DeepSpeed ZeRO-3 updates so many elements at a time (`sub_group_size`). */
const SUB_GROUP_ELEMENTS = 1e9;

/**
 * What DeepSpeed's step makes of the gradients it has kept, bytes: one flat tensor in their dtype and its fp32 copy, of all
 * trainable elements or, with ZeRO-3, of one sub-group (stage_1_and_2.py `step`, stage3.py `_prepare_fp32_grad_for_sub_group`).
 */
export function flatGradientBytes(plan: ParameterPlan, sharding: Sharding): number {
  if (sharding.engine !== 'deepspeed') return 0;
  const width = widthOf(dtypeCode(sharding.computeDtype));
  const elements = plan.trainable * sharding.stateShare;
  const atOnce = sharding.weightShare < 1 ? Math.min(SUB_GROUP_ELEMENTS, elements) : elements;
  return Math.ceil(atOnce * (width === 4 ? 4 : width + 4));
}

/** Parameters gathered for the layer in use, bytes, and how many layers' worth there are at once in a forward pass. */
export interface Gathering {
  readonly layerBytes: number;
  /** FSDP 1 fetches ahead in the backward pass alone (`backward_prefetch`), FSDP 2 in both. */
  readonly forwardLayers: number;
}

export const gatheringOf = (plan: ParameterPlan, sharding: Sharding, strategy: Strategy): Gathering => ({
  layerBytes: sharding.engine === 'fsdp' && sharding.weightShare < 1 ? Math.max(0, ...plan.kindBytes) : 0,
  forwardLayers: strategy === 'fsdp1' ? 1 : 2,
});

/** DeepSpeed's default bucket, elements. */
const BUCKET_ELEMENTS = 5e8;
/** DeepSpeed `stage3_max_live_parameters`. */
const LIVE_ELEMENTS = 1e9;

/** Gradients that DeepSpeed reduces at a time, bytes. */
const bucketBytes = (plan: ParameterPlan, width: number): number => Math.min(BUCKET_ELEMENTS, plan.trainable) * width;

/** Parameters that ZeRO-3 has gathered at a time, bytes. */
const liveBytes = (plan: ParameterPlan, width: number): number => Math.min(LIVE_ELEMENTS * width, plan.residentBytes);

/** Reductions that ZeRO-3 lets the host be ahead of the device: two, and the one it waits for (stage3.py `max_param_reduce_events`). */
const REDUCTIONS_AHEAD = 3;

/**
 * What ZeRO-3's streams keep from PyTorch's allocator beside what is allocated, bytes: layers that were gathered before, and
 * gradients whose copy into the bucket is still to be made (stage3.py `record_stream`).
 */
export function awaitedBytes(plan: ParameterPlan, sharding: Sharding): number {
  if (sharding.engine !== 'deepspeed' || sharding.weightShare === 1) return 0;
  const width = widthOf(dtypeCode(sharding.computeDtype));
  return liveBytes(plan, width) + REDUCTIONS_AHEAD * bucketBytes(plan, width);
}

/** Buffers that exist only to communicate, bytes, alive through forward and backward pass. */
export function communicationBytes(plan: ParameterPlan, sharding: Sharding, gradientBytes: number): number {
  const width = widthOf(dtypeCode(sharding.computeDtype));
  switch (sharding.engine) {
    case 'none':
      return 0;
    case 'ddp':
      // gradient_as_bucket_view is off in accelerate: buckets are a second copy of the gradients.
      return gradientBytes;
    case 'deepspeed': {
      // ZeRO-3 joins a bucket's gradients rank by rank in a second tensor (coalesced_collectives.py `reduce_scatter_coalesced`).
      const buckets = 2 * bucketBytes(plan, width);
      return sharding.weightShare === 1 ? buckets : buckets + liveBytes(plan, width);
    }
    case 'fsdp': {
      // The root unit (embedding, last norm, head) stays gathered from its first use to the end of the backward pass.
      return plan.rootBytes;
    }
  }
}
