import type { Origin } from '../../spec/index.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** What a key means that the recipe reads with a default of its own. */
export const TORCHTUNE: Origin = { kind: 'default', tool: 'torchtune', version: '0.6.1' };

/** Keys that recipes read at the top of a config. Source: recipes/*.py of 0.6.1 and of the development branch. */
export const TORCHTUNE_KEYS: ReadonlySet<string> = new Set(
  split(`
    output_dir model tokenizer checkpointer resume_from_checkpoint save_adapter_weights_only dataset dataset_val seed
    shuffle batch_size batch_size_val optimizer lr_scheduler loss epochs max_steps_per_epoch gradient_accumulation_steps
    clip_grad_norm compile metric_logger log_every_n_steps log_peak_memory_stats log_level device dtype
    enable_activation_checkpointing enable_activation_offloading optimizer_in_bwd profiler low_cpu_ram fsdp
    fsdp_cpu_offload fsdp_reshard_after_forward custom_sharded_layers tensor_parallel_dim tensor_parallel_plan
    context_parallel_dim data_parallel_shard_dim data_parallel_replicate_dim ac_mode ac_option
    enable_async_checkpointing run_val_every_n_steps save_every_n_steps collate_fn cudnn_deterministic_mode quantizer
    fake_quant_after_n_steps teacher_model teacher_checkpointer kd_loss kd_ratio ref_checkpointer enable_fp8_training
    fp8_recipe_name resize_token_embeddings num_steps chat_template memory_efficient_fsdp_wrap kl_coeff whiten_rewards
    ppo_epochs ppo_batch_size forward_batch_size temperature top_k max_generated_tokens stop_token_ids
    policy_model reward_and_value_model value_checkpointer ref_policy_checkpointer reward_checkpointer
    reward_penalty penalise_no_eos min_response_length gamma lmbda
  `),
);

/** Arguments of builders that say nothing about what is held. */
export const BUILDER_KEYS: ReadonlySet<string> = new Set(
  split('_component_ tie_word_embeddings attn_dropout norm_eps rope_base scale_factor max_seq_len'),
);
