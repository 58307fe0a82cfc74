import type { FieldKind } from '../hf-argparser/grammar.ts';
import { type Fields, mergeFields, SCRIPT_FIELDS, TRAINING_ARGUMENTS } from '../hf-trainer/fields.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Fields that ms-swift declares beside TrainingArguments. Source: swift/arguments/*.py of 4.6, swift/llm/argument of 3.12 and 2.6. */
const OWN: Fields = {
  value: split(`
    model model_type model_revision model_id_or_path torch_dtype dtype attn_impl experts_impl use_flash_attn
    tuner_type train_type sft_type tuner_backend rlhf_type lora_rank lora_alpha lora_dropout lora_dropout_p lora_bias
    lora_dtype target_regex lora_target_regex init_weights quant_method quant_bits quantization_bit hqq_axis
    bnb_4bit_compute_dtype bnb_4bit_comp_dtype bnb_4bit_quant_type bnb_4bit_use_double_quant bnb_4bit_quant_storage
    max_length max_model_len packing_length packing_num_proc packing_strategy truncation_strategy max_pixels
    template template_type system split_dataset_ratio dataset_test_ratio dataset_num_proc data_seed
    batch_size eval_batch_size num_labels task_type problem_type device_map max_memory
    gradient_accumulation_steps deepspeed zero_hpz_partition_size deepspeed_autotp_size fsdp sequence_parallel_size
    freeze_parameters_ratio freeze_parameters_regex trainable_parameters_regex vit_gradient_checkpointing vit_use_gc
    model_author model_name num_train_epochs max_epochs loss_scale loss_type acc_strategy metric eval_metric optimizer
    ref_model ref_model_type ref_adapters reward_model beta label_smoothing rpo_alpha cpo_alpha simpo_gamma
    max_completion_length num_generations temperature top_p top_k repetition_penalty use_vllm vllm_mode
    vllm_gpu_memory_utilization sleep_level num_iterations epsilon galore_rank lisa_activated_layers neftune_alpha
    teacher_model lmbda response_length dataset_shuffle lorap_lr_ratio rope_scaling aligner_lr vit_lr
    dataloader_num_workers resume_from_checkpoint output_dir custom_train_dataset_path train_dataset_sample
    gradient_checkpointing_kwargs max_new_tokens custom_register_path external_plugins hub_token
  `),
  bool: split(`
    packing padding_free load_args add_version use_hf use_dora use_rslora freeze_llm freeze_vit freeze_aligner
    streaming lazy_tokenize load_from_cache_file strict remove_unused_columns use_chat_template create_checkpoint_symlink
    enable_dft_loss enable_channel_loss use_logits_to_keep use_galore galore_quantization check_model train_dataloader_shuffle
    resume_only_model predict_with_generate split_by_language use_liger_kernel gradient_checkpointing safe_serialization
    vllm_enable_sleep_mode log_completions offload_model offload_optimizer offload_teacher_model move_model_batches
    add_output_dir_suffix check_dataset_strategy use_self_cognition bf16 fp16 use_flash_ckpt
  `),
  list: split(`
    dataset val_dataset cached_dataset target_modules lora_target_modules modules_to_save lora_modules_to_save adapters
    freeze_parameters trainable_parameters reward_funcs reward_weights report_to callbacks eval_dataset new_special_tokens
    target_parameters custom_dataset_info
  `),
};

export const SWIFT_FIELDS: ReadonlyMap<string, FieldKind> = new Map([
  ...SCRIPT_FIELDS,
  ...mergeFields(TRAINING_ARGUMENTS, OWN),
]);
