import { type Diagnostic, note, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type GradientCheckpointing,
  type OffloadTarget,
  type Origin,
  type Setting,
} from '../../spec/index.ts';
import type { Sharding } from '../dialect.ts';
import type { DeepSpeedStage } from './deepspeed-json.ts';
import { ACCELERATE_DEFAULT } from './keys.ts';
import type { Given } from './read.ts';

/** A value by the name of its option, whoever gives it: flag over file. */
export type Lookup = (option: string) => Given | undefined;

export interface ShardingReading {
  readonly sharding: Sharding;
  readonly gradientCheckpointing?: Setting<GradientCheckpointing>;
  readonly diagnostics: readonly Diagnostic[];
}

/** FSDP as accelerate sets it up: version 1 unless it says 2. Source: accelerate/utils/dataclasses.py, FullyShardedDataParallelPlugin. */
export function readFsdp(lookup: Lookup, origin: Origin): ShardingReading {
  const version = Number(lookup('fsdp_version')?.value ?? 1) === 2 ? 2 : 1;
  const how = version === 2 ? fsdp2(lookup, origin) : fsdp1(lookup, origin);
  // CPUOffload moves parameters, and gradients and optimizer states with them.
  const offload: OffloadTarget[] = isOn(lookup('fsdp_offload_params')) ? ['optimizer', 'parameters'] : [];
  const checkpointing = lookup('fsdp_activation_checkpointing');
  return {
    ...how,
    sharding: { ...how.sharding, offload },
    ...(isOn(checkpointing)
      ? {
          gradientCheckpointing: {
            value: {
              enabled: true,
              useReentrant: false,
              everyNLayers: 1,
              offload: isOn(lookup('fsdp_activation_checkpointing_offload')),
            },
            origin: checkpointing!.origin,
          },
        }
      : {}),
  };
}

function fsdp1(lookup: Lookup, on: Origin): ShardingReading {
  const given = lookup('fsdp_sharding_strategy');
  const origin = given?.origin ?? on;
  const name = String(given?.value ?? 'FULL_SHARD').toUpperCase();
  // The number of each is its place in torch.distributed.fsdp.ShardingStrategy.
  switch (name) {
    case 'FULL_SHARD':
    case '1':
      return { sharding: { strategy: 'fsdp1', offload: [], origin }, diagnostics: [] };
    case 'SHARD_GRAD_OP':
    case '2':
      return likeZero2('SHARD_GRAD_OP', origin);
    case 'NO_SHARD':
    case '3':
      return { sharding: { strategy: 'ddp', offload: [], origin }, diagnostics: [] };
    case 'HYBRID_SHARD':
    case '4':
      return { sharding: { strategy: 'hsdp', offload: [], origin }, diagnostics: [] };
    case 'HYBRID_SHARD_ZERO2':
    case '5':
      return likeZero2('HYBRID_SHARD_ZERO2', origin);
    default:
      return unknownStrategy('fsdp_sharding_strategy', name, origin);
  }
}

function fsdp2(lookup: Lookup, on: Origin): ShardingReading {
  const replicas = lookup('parallelism_config_dp_replicate_size');
  if (Number(replicas?.value ?? 1) > 1) {
    return { sharding: { strategy: 'hsdp', offload: [], origin: replicas!.origin }, diagnostics: [] };
  }
  const reshard = lookup('fsdp_reshard_after_forward');
  if (reshard && reshard.value !== null && !isOn(reshard))
    return likeZero2('fsdp_reshard_after_forward: false', reshard.origin);
  return {
    sharding: { strategy: 'fsdp2', offload: [], origin: lookup('fsdp_version')?.origin ?? on },
    diagnostics: [],
  };
}

/** Parameters stay whole from the first forward to the end of the backward pass: gradients and states are what is shared out. */
const likeZero2 = (what: string, origin: Origin): ShardingReading => ({
  sharding: { strategy: 'zero2', offload: [], origin },
  diagnostics: [
    note('like-zero2', `${what} keeps the parameters whole between forward and backward; it is estimated like ZeRO-2`, {
      location: formatOrigin(origin),
    }),
  ],
});

/** DeepSpeed as accelerate sets it up; a DeepSpeed file holds where it says something. Source: DeepSpeedPlugin. */
export function readDeepSpeed(lookup: Lookup, file: DeepSpeedStage | undefined, on: Origin): ShardingReading {
  const given = lookup('zero_stage');
  const named = lookup('deepspeed_config_file');
  const stage = !file ? (given?.value ?? 2) : file.stage === 'auto' ? (given?.value ?? 2) : (file.stage ?? 0);
  const origin = (file ? named?.origin : given?.origin) ?? on;
  if (stage === 'unknown') return { sharding: { strategy: null, offload: [], origin }, diagnostics: [] };
  if (!/^[0-3]$/.test(String(stage))) return unknownStrategy('zero_stage', String(stage), origin);
  const device = (option: string, own: string | undefined): string =>
    String((own === undefined || own === 'auto' ? (file ? undefined : lookup(option)?.value) : own) ?? 'none');
  const optimizer = device('offload_optimizer_device', file?.optimizerDevice);
  const parameters = device('offload_param_device', file?.parameterDevice);
  const offload: OffloadTarget[] = [];
  if (optimizer !== 'none' && Number(stage) > 0) offload.push('optimizer');
  if (parameters !== 'none' && Number(stage) === 3) offload.push('parameters');
  const toDisk = [optimizer, parameters].includes('nvme');
  return {
    sharding: {
      strategy: Number(stage) === 0 ? 'ddp' : (`zero${stage}` as 'zero1' | 'zero2' | 'zero3'),
      offload,
      origin,
    },
    diagnostics: toDisk
      ? [
          note('offload-to-disk', 'offload goes to a disk; host RAM is estimated as if it were held there', {
            location: formatOrigin(origin),
          }),
        ]
      : [],
  };
}

/** Megatron-LM, XLA and whatever else shares the model out in a way that is not estimated. */
export const readOther = (name: string, origin: Origin): ShardingReading => ({
  sharding: { strategy: null, offload: [], origin },
  diagnostics: [
    warning('not-estimated', `how ${name} shares the model out is not estimated`, {
      location: formatOrigin(origin),
      help: 'run with --mode warn: snug then watches the run',
    }),
  ],
});

const unknownStrategy = (option: string, value: string, origin: Origin): ShardingReading => ({
  sharding: { strategy: null, offload: [], origin },
  diagnostics: [
    warning('unknown-value', `${option} ${value} is no value that accelerate 1.15 knows`, {
      location: formatOrigin(origin),
    }),
  ],
});

/** Tensor, context and sequence parallelism split what one GPU computes, which the estimate does not follow. */
export function modelParallel(lookup: Lookup): Diagnostic[] {
  return ['tp', 'cp', 'sp'].flatMap((kind) => {
    const given = lookup(`parallelism_config_${kind}_size`);
    if (!given || Number(given.value ?? 1) <= 1) return [];
    const message = `parallelism_config_${kind}_size ${given.value} is not estimated: each GPU will need less than predicted`;
    return [warning('not-estimated', message, { location: formatOrigin(given.origin) })];
  });
}

/** str_to_bool of accelerate/utils/environment.py. */
export const isOn = (given: Given | undefined): boolean => /^(?:y|yes|t|true|on|1)$/i.test(String(given?.value ?? ''));

export const defaultOr = (given: Given | undefined): Origin => given?.origin ?? ACCELERATE_DEFAULT;
