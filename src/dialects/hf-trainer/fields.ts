import type { FieldKind } from '../hf-argparser/grammar.ts';

/** Version whose fields and defaults stand here. */
export const TRANSFORMERS = { tool: 'transformers', version: '5.17' } as const;

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Names and option forms of transformers 5.17 `TrainingArguments`, as HfArgumentParser declares them. */
const VALUES = split(`
  output_dir per_device_train_batch_size num_train_epochs max_steps learning_rate lr_scheduler_type
  lr_scheduler_kwargs warmup_steps optim optim_args weight_decay adam_beta1 adam_beta2 adam_epsilon
  optim_target_modules gradient_accumulation_steps max_grad_norm label_smoothing_factor tf32
  gradient_checkpointing_kwargs torch_compile_backend torch_compile_mode liger_kernel_config neftune_noise_alpha
  torch_empty_cache_steps logging_strategy logging_steps log_level log_level_replica disable_tqdm report_to
  run_name project trackio_space_id trackio_bucket_id trackio_static_space_id eval_strategy eval_steps eval_delay
  per_device_eval_batch_size eval_accumulation_steps save_strategy save_steps save_total_limit hub_token
  hub_private_repo hub_model_id hub_strategy hub_revision metric_for_best_model greater_is_better seed data_seed
  accelerator_config parallelism_config dataloader_num_workers dataloader_prefetch_factor
  dataloader_multiprocessing_context train_sampling_strategy length_column_name ddp_find_unused_parameters
  ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph ddp_backend ddp_timeout fsdp_config deepspeed
  resume_from_checkpoint local_rank
`);

const BOOLS = split(`
  average_tokens_across_devices bf16 fp16 bf16_full_eval fp16_full_eval gradient_checkpointing torch_compile
  use_liger_kernel use_cache auto_find_batch_size logging_first_step log_on_each_node logging_nan_inf_filter
  include_num_input_tokens_seen prediction_loss_only eval_on_start eval_do_concat_batches eval_use_gather_object
  batch_eval_metrics save_only_model save_on_each_node enable_jit_checkpoint push_to_hub hub_always_push
  load_best_model_at_end ignore_data_skip restore_callback_states_from_checkpoint full_determinism use_cpu
  dataloader_drop_last dataloader_pin_memory dataloader_persistent_workers dataloader_in_order
  remove_unused_columns fsdp skip_memory_metrics do_train do_eval do_predict
`);

const LISTS = split('include_for_metrics label_names debug');

const NEGATABLE = split(`
  average_tokens_across_devices log_on_each_node logging_nan_inf_filter eval_do_concat_batches dataloader_pin_memory
  dataloader_in_order remove_unused_columns skip_memory_metrics
`);

/** Fields of older versions: read all the same, since most commands in the wild were written for them. */
const FORMER: Readonly<Record<FieldKind, readonly string[]>> = {
  value: split(`
    evaluation_strategy warmup_ratio logging_dir per_gpu_train_batch_size per_gpu_eval_batch_size
    fsdp_transformer_layer_cls_to_wrap fsdp_min_num_params sharded_ddp half_precision_backend fp16_opt_level
    fp16_backend torchdynamo ray_scope lr_end
  `),
  bool: split(
    'overwrite_output_dir group_by_length no_cuda save_safetensors adafactor use_mps_device use_ipex jit_mode_eval',
  ),
  list: [],
};

/** Fields that scripts of transformers, PEFT and many users declare beside TrainingArguments. */
const SCRIPT: Readonly<Record<FieldKind, readonly string[]>> = {
  value: split(
    'model_name_or_path dtype torch_dtype block_size max_seq_length max_length model_max_length attn_implementation',
  ),
  bool: split('load_in_4bit load_in_8bit use_peft use_lora use_dora'),
  list: [],
};

export type Fields = Readonly<Record<FieldKind, readonly string[]>>;

/** Every field of the maps given, later maps deciding the form of a name. */
export function mergeFields(...parts: readonly Fields[]): ReadonlyMap<string, FieldKind> {
  const fields = new Map<string, FieldKind>();
  for (const part of parts) {
    for (const kind of ['value', 'bool', 'list'] as const) for (const name of part[kind]) fields.set(name, kind);
  }
  return fields;
}

export const TRAINING_ARGUMENTS: Fields = { value: VALUES, bool: BOOLS, list: LISTS };
export const TRAINING_ARGUMENT_NAMES: ReadonlySet<string> = new Set([...VALUES, ...BOOLS, ...LISTS]);
export const TRAINING_ARGUMENTS_NEGATABLE: readonly string[] = NEGATABLE;
export const SCRIPT_FIELDS: ReadonlyMap<string, FieldKind> = mergeFields(FORMER, SCRIPT, TRAINING_ARGUMENTS);
export const FORMER_FIELDS: Fields = FORMER;

/** `OptimizerNames` of transformers 5.17, and two names that older versions took. */
export const OPTIMIZERS = split(`
  adamw_torch adamw_torch_fused adamw_torch_xla adamw_torch_npu_fused adafactor adamw_anyprecision adamw_torch_4bit
  adamw_torch_8bit ademamix sgd adagrad adamw_bnb_8bit adamw_8bit ademamix_8bit lion_8bit lion_32bit paged_adamw_32bit
  paged_adamw_8bit paged_ademamix_32bit paged_ademamix_8bit paged_lion_32bit paged_lion_8bit rmsprop rmsprop_bnb
  rmsprop_bnb_8bit rmsprop_bnb_32bit galore_adamw galore_adamw_8bit galore_adafactor galore_adamw_layerwise
  galore_adamw_8bit_layerwise galore_adafactor_layerwise lomo adalomo grokadamw schedule_free_radam schedule_free_adamw
  schedule_free_sgd apollo_adamw apollo_adamw_layerwise stable_adamw adamw_hf adamw_apex_fused
`);
