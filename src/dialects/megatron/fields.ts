import type { FieldKind, Grammar } from '../hf-argparser/grammar.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Options that name sizes and switches of memory. Source: megatron/training/arguments.py and the configs it is made from. */
const VALUES = split(`
  micro_batch_size global_batch_size seq_length encoder_seq_length max_position_embeddings num_layers hidden_size
  ffn_hidden_size num_attention_heads num_query_groups kv_channels vocab_size make_vocab_size_divisible_by normalization
  position_embedding_type rotary_base num_experts optimizer clip_grad num_workers eval_interval eval_iters
  tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size expert_model_parallel_size
  recompute_granularity recompute_method recompute_num_layers attention_backend transformer_impl save load
  megatron_fsdp_version data_parallel_sharding_strategy fp8_format eval_micro_batch_size
`);
const BOOLS = split(`
  bf16 fp16 swiglu group_query_attention untie_embeddings_and_output_weights use_distributed_optimizer use_torch_fsdp2
  use_megatron_fsdp use_custom_fsdp recompute_activations use_flash_attn cross_entropy_loss_fusion optimizer_cpu_offload
  sequence_parallel disable_bias_linear sft no_position_embedding
`);

/** Options without effect on the memory of the step. */
const IDLE = split(`
  lr min_lr lr_decay_style lr_decay_iters lr_decay_samples lr_warmup_iters lr_warmup_samples lr_warmup_fraction weight_decay
  adam_beta1 adam_beta2 adam_eps init_method_std train_iters train_samples log_interval save_interval seed
  tensorboard_dir tokenizer_type tokenizer_model vocab_file merge_file data_cache_path exit_duration_in_mins
  attention_dropout hidden_dropout distributed_backend distributed_timeout_minutes ckpt_format wandb_project wandb_exp_name
`);

export const IDLE_OPTIONS: ReadonlySet<string> = new Set([...IDLE, 'data_path', 'split']);

const fields = new Map<string, FieldKind>();
for (const name of [...VALUES, ...IDLE, 'split']) fields.set(name, 'value');
for (const name of BOOLS) fields.set(name, 'bool');
for (const name of ['data_path', 'rampup_batch_size']) fields.set(name, 'list');

/** There are several hundred more. */
export const MEGATRON_GRAMMAR: Grammar = { fields, negatable: new Set(), open: true };
