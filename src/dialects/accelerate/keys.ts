import type { OptionTable } from '../scan-options.ts';

/** Options of `accelerate launch` 1.15; abbreviations are switched off there. Source: accelerate/commands/launch.py. */
export const ACCELERATE_OPTIONS: OptionTable = {
  style: 'argparse',
  flags: [
    ...['-h|--help', '-q|--quiet', '--cpu', '--multi_gpu', '--tpu', '--enable_cpu_affinity', '--dynamo_use_fullgraph'],
    ...['--dynamo_use_dynamic', '--dynamo_use_regional_compilation', '--use_deepspeed', '--use_fsdp'],
    ...['--use_parallelism_config', '--use_megatron_lm', '--same_network', '-m|--module', '--no_python'],
    ...[
      '--tpu_cluster',
      '--no_tpu_cluster',
      '--tpu_use_sudo',
      '--downcast_bf16',
      '--fp8_use_autocast_during_eval',
      '--debug',
    ],
  ],
  values: [
    ...['--config_file', '--mixed_precision', '--num_processes', '--num_machines', '--num_cpu_threads_per_process'],
    ...['--dynamo_backend', '--dynamo_mode', '--gpu_ids', '--machine_rank', '--main_process_ip', '--main_process_port'],
    ...['-t|--tee', '--log_dir', '--role', '--rdzv_backend', '--rdzv_conf', '--max_restarts', '--monitor_interval'],
    ...[
      '--vm',
      '--env',
      '--main_training_function',
      '--mpirun_hostfile',
      '--aws_access_key_id',
      '--aws_secret_access_key',
    ],
    ...['--deepspeed_config_file', '--zero_stage', '--offload_optimizer_device', '--offload_param_device'],
    ...['--offload_optimizer_nvme_path', '--offload_param_nvme_path', '--gradient_accumulation_steps'],
    ...['--gradient_clipping', '--zero3_init_flag', '--zero3_save_16bit_model', '--deepspeed_hostfile'],
    ...['--deepspeed_exclusion_filter', '--deepspeed_inclusion_filter', '--deepspeed_multinode_launcher'],
    ...['--deepspeed_moe_layer_cls_names', '--fsdp_version', '--fsdp_offload_params', '--fsdp_min_num_params'],
    ...['--fsdp_sharding_strategy', '--fsdp_reshard_after_forward', '--fsdp_auto_wrap_policy'],
    ...['--fsdp_transformer_layer_cls_to_wrap', '--fsdp_backward_prefetch', '--fsdp_state_dict_type'],
    ...['--fsdp_forward_prefetch', '--fsdp_use_orig_params', '--fsdp_cpu_ram_efficient_loading'],
    ...['--fsdp_sync_module_states', '--fsdp_activation_checkpointing', '--fsdp_activation_checkpointing_offload'],
    ...['--fp8_backend', '--fp8_margin', '--fp8_interval', '--fp8_format', '--fp8_amax_history_len'],
    ...['--fp8_amax_compute_algo', '--fp8_override_linear_precision', '--fp8_opt_level'],
    ...['--fp8_enable_fsdp_float8_all_gather', '--fp8_pad_inner_dim'],
    ...prefixed('--parallelism_config_', [
      ...['dp_replicate_size', 'dp_shard_size', 'tp_size', 'cp_size', 'cp_backend', 'cp_comm_strategy', 'sp_size'],
      ...['sp_backend', 'sp_seq_length', 'sp_seq_length_is_variable', 'sp_attn_implementation'],
    ]),
    ...prefixed('--megatron_lm_', [
      ...['tp_degree', 'pp_degree', 'use_custom_fsdp', 'no_load_optim', 'no_save_optim', 'eod_mask_loss'],
      ...['overlap_cpu_optimizer_d2h_h2d', 'optimizer_cpu_offload', 'use_precision_aware_optimizer'],
      ...['decoder_last_pipeline_num_layers', 'num_micro_batches', 'sequence_parallelism', 'recompute_activations'],
      ...['use_distributed_optimizer', 'gradient_clipping', 'recompute_granularity', 'recompute_method'],
      ...['recompute_num_layers', 'attention_backend', 'expert_model_parallel_size', 'context_parallel_size'],
      ...['attention_dropout', 'hidden_dropout', 'attention_softmax_in_fp32', 'expert_tensor_parallel_size'],
      ...['calculate_per_token_loss', 'use_rotary_position_embeddings'],
    ]),
  ],
};

function prefixed(prefix: string, names: readonly string[]): string[] {
  return names.map((name) => prefix + name);
}

/** `--num-processes` and `--num_processes` are `num_processes`. */
export const optionName = (spelling: string): string => spelling.replace(/^--/, '').replaceAll('-', '_');

export const KNOWN_OPTIONS: ReadonlySet<string> = new Set(
  [...ACCELERATE_OPTIONS.flags, ...ACCELERATE_OPTIONS.values].map((group) => optionName(group.split('|').at(-1)!)),
);

/** Options that decide how many processes there are, who holds what, or in which precision. */
export const READ_OPTIONS: ReadonlySet<string> = new Set([
  ...['config_file', 'mixed_precision', 'num_processes', 'num_machines', 'gpu_ids', 'cpu', 'multi_gpu', 'tpu'],
  ...['use_deepspeed', 'use_fsdp', 'use_megatron_lm', 'deepspeed_config_file', 'zero_stage'],
  ...['offload_optimizer_device', 'offload_param_device', 'fsdp_version', 'fsdp_offload_params'],
  ...['fsdp_sharding_strategy', 'fsdp_reshard_after_forward', 'fsdp_activation_checkpointing'],
  ...['fsdp_activation_checkpointing_offload', 'module', 'no_python', 'parallelism_config_dp_replicate_size'],
  ...['parallelism_config_tp_size', 'parallelism_config_cp_size', 'parallelism_config_sp_size'],
]);

export const ACCELERATE_MODULES: readonly string[] = ['accelerate.commands.launch'];
