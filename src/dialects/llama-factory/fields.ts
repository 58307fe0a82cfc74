import { type Fields, FORMER_FIELDS, mergeFields, TRAINING_ARGUMENTS } from '../hf-trainer/fields.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Fields that LLaMA-Factory declares beside transformers' TrainingArguments. Source: llamafactory/hparams/*.py of 0.9.5. */
const OWN: Fields = {
  value: split(`
    model_name_or_path adapter_name_or_path adapter_folder cache_dir add_tokens add_special_tokens
    new_special_tokens_config init_special_tokens model_revision rope_scaling flash_attn mixture_of_depths
    moe_aux_loss_coef infer_backend offload_folder infer_dtype hf_hub_token ms_hub_token om_hub_token
    quantization_method quantization_bit quantization_type quantization_device_map image_max_pixels image_min_pixels
    video_max_pixels video_min_pixels video_fps video_maxlen audio_sampling_rate export_dir export_size export_device
    export_quantization_bit export_quantization_dataset export_quantization_nsamples export_quantization_maxlen
    export_hub_model_id kt_weight_path kt_expert_checkpoint_path kt_use_lora_experts kt_lora_expert_num
    kt_lora_expert_intermediate_size vllm_maxlen vllm_gpu_util vllm_max_lora_rank vllm_config sglang_maxlen
    sglang_mem_fraction sglang_tp_size sglang_config sglang_lora_backend
    template dataset eval_dataset dataset_dir media_dir cutoff_len buffer_size mix_strategy interleave_probs
    preprocessing_batch_size preprocessing_num_workers max_samples eval_num_beams val_size packing tool_format
    default_system tokenized_path
    generation_max_length generation_num_beams generation_config ray_num_workers ray_init_kwargs master_addr master_port
    ray_run_name ray_storage_path ray_storage_filesystem resources_per_worker placement_strategy
    fp8_backend profiler_output_dir profiler_wait_steps profiler_warmup_steps profiler_active_steps profiler_repeat
    profile_modules
    freeze_trainable_layers freeze_trainable_modules freeze_extra_modules additional_target module_dropout oft_rank
    oft_block_size oft_target lora_alpha lora_dropout lora_rank lora_target loraplus_lr_ratio loraplus_lr_embedding
    pissa_iter pref_beta pref_ftx pref_bco_weight pref_loss dpo_label_smoothing kto_chosen_weight kto_rejected_weight
    simpo_gamma ppo_buffer_size ppo_epochs ppo_target ref_model ref_model_adapters ref_model_quantization_bit
    reward_model reward_model_adapters reward_model_quantization_bit reward_model_type ld_alpha galore_target galore_rank
    galore_update_interval galore_scale galore_proj_type apollo_target apollo_rank apollo_update_interval apollo_scale
    apollo_proj apollo_proj_type apollo_scale_type badam_mode badam_start_block badam_switch_mode badam_switch_interval
    badam_update_ratio badam_mask_mode badam_verbose swanlab_project swanlab_workspace swanlab_run_name swanlab_mode
    swanlab_api_key swanlab_logdir swanlab_lark_webhook_url swanlab_lark_secret stage finetuning_type
    hyper_parallel_args asft_alpha eaft_alpha early_stopping_steps
    temperature top_p top_k num_beams max_length max_new_tokens repetition_penalty length_penalty
  `),
  bool: split(`
    use_fast_tokenizer resize_vocab split_special_tokens low_cpu_mem_usage shift_attn use_unsloth use_unsloth_gc
    enable_liger_kernel disable_gradient_checkpointing use_reentrant_gc upcast_layernorm upcast_lmhead_output
    train_from_scratch use_kv_cache use_v1_kernels print_param_status trust_remote_code double_quantization
    image_do_pan_and_scan crop_to_patches use_audio_in_video export_legacy_format use_kt vllm_enforce_eager
    train_on_prompt mask_history streaming overwrite_cache ignore_pad_token_for_loss eval_on_each_dataset neat_packing
    enable_thinking preserve_thinking data_shared_file_system sortish_sampler predict_with_generate fp8
    fp8_enable_fsdp_float8_all_gather enable_torch_profiler profiler_record_shapes profiler_profile_memory
    profiler_with_stack overwrite_output_dir create_new_adapter use_rslora use_dora pissa_init pissa_convert
    ppo_score_norm ppo_whiten_rewards use_galore galore_layerwise use_apollo apollo_layerwise apollo_scale_front
    use_badam use_swanlab pure_bf16 use_llama_pro use_adam_mini use_mca use_hyper_parallel use_muon use_dft_loss
    use_asft_loss use_eaft_loss freeze_vision_tower freeze_multi_modal_projector freeze_language_model
    compute_accuracy disable_shuffling plot_loss include_effective_tokens_per_second do_sample skip_special_tokens
  `),
  list: [],
};

/** Names of older releases, read as what they became. */
export const FORMER: Readonly<Record<string, { readonly now: string; readonly since: string }>> = {
  checkpoint_dir: { now: 'adapter_name_or_path', since: '0.4' },
  max_source_length: { now: 'cutoff_len', since: '0.1' },
  max_target_length: { now: 'cutoff_len', since: '0.1' },
  sft_packing: { now: 'packing', since: '0.4' },
  dpo_beta: { now: 'pref_beta', since: '0.7' },
  dpo_loss: { now: 'pref_loss', since: '0.7' },
};

const OLDER: Fields = { value: Object.keys(FORMER), bool: [], list: [] };

/** Every field by its name: what its command line and its files take. */
export const LLAMA_FACTORY_FIELDS = mergeFields(FORMER_FIELDS, TRAINING_ARGUMENTS, OWN, OLDER);

/** Booleans that are true by default. */
export const LLAMA_FACTORY_NEGATABLE: ReadonlySet<string> = new Set(
  split(`
    use_fast_tokenizer low_cpu_mem_usage use_reentrant_gc use_kv_cache double_quantization ignore_pad_token_for_loss
    enable_thinking average_tokens_across_devices log_on_each_node logging_nan_inf_filter eval_do_concat_batches
    dataloader_pin_memory dataloader_in_order remove_unused_columns skip_memory_metrics profiler_record_shapes
    profiler_profile_memory profiler_with_stack freeze_vision_tower freeze_multi_modal_projector do_sample
    skip_special_tokens
  `),
);
