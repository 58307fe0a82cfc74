import type { Origin } from '../../spec/index.ts';
import type { Unread } from '../contract.ts';
import type { FileValue } from '../dialect.ts';

/** What accelerate 1.15 knows in its config file. Source: accelerate/commands/config/config_args.py. */

export const ACCELERATE_DEFAULT = { kind: 'default', tool: 'accelerate', version: '1.15' } as const;

/** Maps whose keys count as options of their own; those of three get the section's name in front where it is missing. */
export const SECTIONS: Readonly<Record<string, string>> = {
  fsdp_config: 'fsdp_',
  fp8_config: 'fp8_',
  dynamo_config: 'dynamo_',
  deepspeed_config: '',
  parallelism_config: '',
  megatron_lm_config: '',
  mpirun_config: '',
};

/** Keys at the top that are read. */
export const READ_KEYS: ReadonlySet<string> = new Set([
  ...['compute_environment', 'distributed_type', 'mixed_precision', 'fp16', 'use_cpu', 'num_processes', 'num_machines'],
  'gpu_ids',
]);

/** Keys at the top that place or name processes and change no byte on a GPU. */
export const NO_EFFECT_KEYS: ReadonlySet<string> = new Set([
  ...['debug', 'enable_cpu_affinity', 'machine_rank', 'main_process_ip', 'main_process_port', 'rdzv_backend'],
  ...['same_network', 'main_training_function', 'downcast_bf16', 'tpu_name', 'tpu_zone', 'tpu_use_cluster'],
  ...['tpu_use_sudo', 'command_file', 'commands', 'tpu_vm', 'tpu_env', 'dynamo_backend'],
]);

/** Keys inside sections that are read, under the names of the launcher's options. */
export const READ_SECTION_KEYS: ReadonlySet<string> = new Set([
  ...['fsdp_version', 'fsdp_sharding_strategy', 'fsdp_reshard_after_forward', 'fsdp_offload_params'],
  ...['fsdp_activation_checkpointing', 'fsdp_activation_checkpointing_offload', 'zero_stage'],
  ...['offload_optimizer_device', 'offload_param_device', 'deepspeed_config_file'],
  ...['parallelism_config_dp_replicate_size', 'parallelism_config_tp_size', 'parallelism_config_cp_size'],
  'parallelism_config_sp_size',
]);

/** Keys of a trainer's own `fsdp_config` that no reader of FSDP looks at. */
export const unreadFsdp = (config: Readonly<Record<string, FileValue>>, origin: Origin): readonly Unread[] =>
  Object.keys(config)
    .filter(
      (key) =>
        !READ_SECTION_KEYS.has(key.startsWith('fsdp_') ? key : `fsdp_${key}`) && !/^(?:fsdp_)?cpu_offload$/.test(key),
    )
    .map((key) => ({ key: `fsdp_config.${key}`, origin, reason: 'not-estimated' }));

/** Where an option stands in the file, when it is written there for the first time. */
export function keyPathOf(option: string): readonly string[] {
  if (option.startsWith('fsdp_')) return ['fsdp_config', option];
  if (option.startsWith('parallelism_config_')) return ['parallelism_config', option];
  return READ_SECTION_KEYS.has(option) ? ['deepspeed_config', option] : [option];
}
