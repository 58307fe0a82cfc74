const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Keys of axolotl 0.19, those of its own plugins included. Source: axolotl/utils/schemas, axolotl/integrations. */
export const AXOLOTL_KEYS: ReadonlySet<string> = new Set(
  split(`
    max_packed_sequence_len rope_scaling noisy_embedding_alpha dpo_beta evaluation_strategy eval_table_size
    eval_max_new_tokens dpo_use_logits_to_keep dpo_generate_during_eval dpo_norm_loss rpo_alpha s2_attention
    flash_attn_rms_norm image_size image_resize_algorithm role_boundaries use_ray ray_run_name ray_num_workers
    resources_per_worker gradio_title gradio_share gradio_server_name gradio_server_port gradio_max_new_tokens
    gradio_temperature lisa_n_layers lisa_step_interval lisa_layers_attribute use_otel_metrics otel_metrics_host
    otel_metrics_port use_trackio trackio_project_name trackio_run_name trackio_space_id use_comet comet_api_key
    comet_workspace comet_project_name comet_experiment_key comet_mode comet_online comet_experiment_config
    use_mlflow mlflow_tracking_uri mlflow_experiment_name mlflow_run_name hf_mlflow_log_artifacts use_wandb
    wandb_name wandb_run_id wandb_mode wandb_project wandb_entity wandb_watch wandb_log_model
    gradient_accumulation_steps micro_batch_size batch_size eval_batch_size auto_find_batch_size train_on_inputs
    group_by_length learning_rate embedding_lr embedding_lr_scale weight_decay optimizer optim_args
    optim_target_modules torchdistx_path lr_scheduler lr_scheduler_kwargs lr_quadratic_warmup cosine_min_lr_ratio
    cosine_constant_lr_ratio lr_div_factor lr_groups adam_epsilon adam_epsilon2 adam_beta1 adam_beta2 adam_beta3
    dion_lr dion_momentum dion_rank_fraction dion_rank_multiple_of qgalore_rank qgalore_update_proj_gap
    qgalore_scale qgalore_proj_type qgalore_proj_quant qgalore_proj_bits qgalore_proj_group_size
    qgalore_cos_threshold qgalore_gamma_proj qgalore_queue_size max_grad_norm num_epochs jagged_restart_steps
    jagged_restart_warmup_steps jagged_restart_anneal_steps relora relora_prune_ratio relora_prune_method
    relora_cpu_offload load_in_8bit load_in_4bit adapter lora_model_dir lora_r lora_alpha lora_fan_in_fan_out
    lora_target_modules lora_target_parameters lora_target_linear lora_modules_to_save lora_rank_pattern
    lora_alpha_pattern lora_dropout peft_layers_to_transform peft_layers_pattern peft peft_use_dora peft_use_rslora
    peft_layer_replication peft_init_lora_weights peft_trainable_token_indices peft_ensure_weight_tying
    peft_autocast_adapter_dtype qlora_sharded_model_loading lora_on_cpu gptq bnb_config_kwargs loraplus_lr_ratio
    loraplus_lr_embedding merge_lora merge_method output_dir hub_model_id hub_strategy hub_revision save_safetensors
    base_model base_model_config cls_model_config tokenizer_config tokenizer_use_fast tokenizer_legacy
    tokenizer_use_mistral_common tokenizer_type processor_type processor_kwargs tokenizer_save_jinja_files
    trust_remote_code experimental_skip_move_to_device use_kernels model_quantization_config
    model_quantization_config_kwargs use_onebitllms strict resume_from_checkpoint auto_resume_from_checkpoints
    resize_token_embeddings_to_32x mean_resizing_embeddings shrink_embeddings embeddings_skip_upcast reinit_weights
    trainer_cls rl trl vllm ebft qat quantization reward_model dynamic_checkpoint process_reward_model
    center_rewards_coefficient num_labels dpo_use_weighting dpo_label_smoothing precompute_ref_log_probs
    dpo_use_liger_kernel dpo_padding_free dpo_loss_type dpo_loss_weights datasets test_datasets
    shuffle_merged_datasets shuffle_before_merging_datasets dataset_prepared_path dataset_shard_num
    dataset_shard_idx skip_prepare_dataset num_dataset_shards_to_save pretraining_dataset dataset_processes
    dataset_num_proc dataset_exact_deduplication dataset_keep_in_memory dataloader_pin_memory dataloader_num_workers
    dataloader_prefetch_factor dataloader_drop_last accelerator_config remove_unused_columns push_dataset_to_hub
    hf_use_auth_token device device_map world_size local_rank ddp seed ddp_timeout ddp_bucket_cap_mb
    ddp_broadcast_buffers ddp_find_unused_parameters do_causal_lm_eval eval_causal_lm_metrics do_bench_eval
    bench_dataset bench_split metric_for_best_model greater_is_better loss_watchdog_threshold loss_watchdog_patience
    gc_steps torch_empty_cache_steps gc_collect_steps bf16 fp16 fp8 fp8_config fp8_enable_fsdp_float8_all_gather
    bfloat16 float16 tf32 float32 gradient_checkpointing gradient_checkpointing_kwargs selective_checkpointing
    activation_offloading layer_offloading freeze_mm_modules unfrozen_parameters sequence_len excess_length_strategy
    eval_sequence_len min_sample_len max_prompt_len sample_packing sample_packing_group_size sample_packing_bin_size
    sample_packing_sequentially sample_packing_mp_start_method eval_sample_packing pad_to_sequence_len
    pad_to_multiple_of curriculum_sampling multipack_real_batches batch_flattening use_pose pose_split_on_token_ids
    pose_max_context_len pose_num_chunks pretrain_multipack_buffer_size pretrain_multipack_attn
    pretraining_sample_concatenation streaming streaming_multipack_buffer_size xformers_attention sdp_attention
    flex_attention flex_attn_compile_kwargs flash_attention flash_attn_cross_entropy flash_attn_fuse_mlp
    flash_optimum sage_attention eager_attention attn_implementation gemma4_hybrid_attn_impl large_head_attention
    flash_attn_d512 sdpa_varlen fused_attn_kernel experts_implementation ple_cpu_offload quantize_moe_experts
    scaling_softmax scaling_softmax_factor scaling_softmax_bias lora_mlp_kernel lora_qkv_kernel lora_o_kernel
    lora_embedding_kernel chunked_cross_entropy chunked_cross_entropy_num_chunks use_eaft eaft_alpha eaft_k
    tiled_mlp tiled_mlp_num_shards tiled_mlp_use_original_mlp llama4_linearized_experts deepspeed deepcompile fsdp
    fsdp_config fsdp_version fp32_norms fp32_norm_classes fsdp_final_state_dict_type val_set_size dp_shard_size
    dp_replicate_size sequence_parallel_degree context_parallel_size heads_k_stride ring_attn_func
    tensor_parallel_size special_tokens tokens added_tokens_overrides torch_compile torch_compile_backend
    torch_compile_mode torch_compile_options max_steps warmup_steps warmup_ratio eval_steps evals_per_epoch
    eval_strategy save_steps saves_per_epoch save_strategy save_total_limit save_first_step logging_steps
    early_stopping_patience load_best_model_at_end save_only_model use_tensorboard profiler_steps
    profiler_steps_start include_tokens_per_second include_tkps neftune_noise_alpha orpo_alpha simpo_gamma cpo_alpha
    kto_desirable_weight kto_undesirable_weight rl_beta max_memory gpu_memory_limit low_cpu_mem_usage chat_template
    chat_template_jinja chat_template_kwargs eot_tokens default_system_message fix_untrained_tokens is_preprocess
    preprocess_iterable total_num_tokens total_supervised_tokens sample_packing_eff_est axolotl_config_path
    is_falcon_derived_model is_llama_derived_model is_mistral_derived_model is_qwen_derived_model plugins
    generate_samples num_generation_samples generation_max_new_tokens generation_temperature generation_top_p
    generation_top_k generation_prompt_ratio generation_do_sample model_config model_kwargs model_type
    model_revision
    cut_cross_entropy liger_cross_entropy liger_fused_linear_cross_entropy liger_glu_activation liger_swiglu
    liger_kernel_impl liger_layer_norm liger_rms_norm liger_rms_norm_gated liger_rope liger_use_token_scaling
    kd_alpha kd_beta kd_ce_alpha kd_normalize_topk kd_online_server kd_online_server_base_url kd_online_timeout
    kd_online_topk kd_temperature kd_temperature_min kd_trainer spectrum_model_name spectrum_top_fraction
    grokfast_alpha grokfast_lamb dense_mixer diffusion llmcompressor lm_eval_batch_size lm_eval_model
    lm_eval_post_train lm_eval_tasks use_swanlab swanlab_project swanlab_experiment_name swanlab_mode
    swanlab_workspace swanlab_api_key use_mora mora use_scattermoe use_sonicmoe unsloth_cross_entropy_loss
    unsloth_lora_mlp unsloth_lora_qkv unsloth_lora_o unsloth_rms_norm unsloth_rope lora_exclude_modules beta
  `),
);

/** Keys that are switches on the command line, `--x` and `--no-x`, and take no value there. Source: axolotl/cli/config_options.py. */
export const SWITCHES: ReadonlySet<string> = new Set(
  split(`
    auto_find_batch_size auto_resume_from_checkpoints bfloat16 chunked_cross_entropy comet_online
    curriculum_sampling dataloader_drop_last dataloader_pin_memory dataset_exact_deduplication
    dataset_keep_in_memory ddp ddp_broadcast_buffers ddp_find_unused_parameters deepcompile do_bench_eval
    do_causal_lm_eval dpo_generate_during_eval dpo_norm_loss dpo_padding_free dpo_use_liger_kernel
    dpo_use_logits_to_keep dpo_use_weighting eager_attention embeddings_skip_upcast eval_sample_packing
    experimental_skip_move_to_device flash_attention flash_attn_cross_entropy flash_attn_d512 flash_attn_fuse_mlp
    flash_attn_rms_norm flash_optimum flex_attention float16 float32 fp16 fp32_norms fp8
    fp8_enable_fsdp_float8_all_gather freeze_mm_modules fused_attn_kernel gemma4_hybrid_attn_impl generate_samples
    generation_do_sample gptq gradio_share greater_is_better group_by_length hf_mlflow_log_artifacts
    hf_use_auth_token include_tkps include_tokens_per_second is_falcon_derived_model is_llama_derived_model
    is_mistral_derived_model is_preprocess is_qwen_derived_model layer_offloading llama4_linearized_experts
    load_best_model_at_end load_in_4bit load_in_8bit lora_embedding_kernel lora_fan_in_fan_out lora_mlp_kernel
    lora_o_kernel lora_on_cpu lora_qkv_kernel lora_target_linear low_cpu_mem_usage lr_quadratic_warmup
    mean_resizing_embeddings merge_lora multipack_real_batches pad_to_sequence_len peft_autocast_adapter_dtype
    peft_ensure_weight_tying peft_init_lora_weights peft_use_dora peft_use_rslora ple_cpu_offload
    precompute_ref_log_probs preprocess_iterable pretrain_multipack_attn pretraining_sample_concatenation
    process_reward_model qgalore_proj_quant qlora_sharded_model_loading quantize_moe_experts reinit_weights relora
    relora_cpu_offload remove_unused_columns resize_token_embeddings_to_32x reward_model s2_attention sage_attention
    sample_packing sample_packing_sequentially save_first_step save_only_model save_safetensors scaling_softmax
    sdp_attention sdpa_varlen shrink_embeddings shuffle_before_merging_datasets shuffle_merged_datasets
    skip_prepare_dataset streaming strict tiled_mlp tiled_mlp_use_original_mlp tokenizer_legacy
    tokenizer_save_jinja_files tokenizer_use_fast tokenizer_use_mistral_common train_on_inputs trust_remote_code
    use_comet use_eaft use_kernels use_mlflow use_onebitllms use_otel_metrics use_pose use_ray use_tensorboard
    use_trackio use_wandb xformers_attention
    debug debug_text_only shard
  `),
);

/** What axolotl takes where a config says nothing. Source: axolotl/utils/schemas of 0.19. */
export const AXOLOTL = { kind: 'default', tool: 'axolotl', version: '0.19' } as const;
