const dtype = (given) => ({ bfloat16: 'bf16', float16: 'fp16', float32: 'fp32', 'bf16-true': 'bf16' })[given] ?? given;
const flash = (given) => ({ fa2: 'flash_attention_2' })[given] ?? given;

/** Key of a config (dotted where nested) → setting of `snug check --json` that must hold its value. */
export const EXPECTED_KEYS = {
  model_name_or_path: ['model_name_or_path'],
  base_model: ['model_name_or_path'],
  model: ['model_name_or_path'],
  per_device_train_batch_size: ['per_device_train_batch_size'],
  micro_batch_size: ['per_device_train_batch_size'],
  'train.micro_batch_size': ['per_device_train_batch_size'],
  device_train_microbatch_size: ['per_device_train_batch_size'],
  per_device_eval_batch_size: ['per_device_eval_batch_size'],
  eval_batch_size: ['per_device_eval_batch_size'],
  gradient_accumulation_steps: ['gradient_accumulation_steps'],
  max_length: ['max_length'],
  max_seq_length: ['max_length'],
  sequence_len: ['max_length'],
  cutoff_len: ['max_length'],
  max_seq_len: ['max_length'],
  'train.max_seq_length': ['max_length'],
  packing: ['packing'],
  sample_packing: ['packing'],
  dtype: ['dtype', dtype],
  torch_dtype: ['dtype', dtype],
  mixed_precision: ['mixed_precision'],
  optim: ['optim'],
  optimizer: ['optim'],
  attn_implementation: ['attn_implementation'],
  flash_attn: ['attn_implementation', flash],
  gradient_checkpointing: ['gradient_checkpointing'],
  max_grad_norm: ['max_grad_norm'],
  gradient_clipping: ['max_grad_norm'],
  lora_r: ['lora.r'],
  lora_rank: ['lora.r'],
  lora_alpha: ['lora.lora_alpha'],
  lora_dropout: ['lora.lora_dropout'],
  output_dir: ['output_dir'],
  out_dir: ['output_dir'],
  save_total_limit: ['save_total_limit'],
  dataloader_num_workers: ['dataloader_num_workers'],
  neftune_noise_alpha: ['neftune_noise_alpha'],
  num_machines: ['distributed.nodes'],
};

/** Last parts of keys that go into a setting together with others: their own line is not the setting's place. */
export const SILENT_PARTS = new Set([
  // method, lora, quantization
  ...['use_peft', 'load_in_4bit', 'load_in_8bit', 'finetuning_type', 'quantization_method', 'double_quantization'],
  ...['lora_alpha', 'lora_dropout', 'lora_target', 'lora_target_modules', 'lora_target_linear', 'target_modules'],
  ...['lora_modules_to_save', 'lora_query', 'lora_key', 'lora_value', 'lora_projection', 'lora_mlp', 'lora_head'],
  // gradient_checkpointing
  ...['use_reentrant', 'activation_checkpointing_reentrant', 'gradient_checkpointing'],
  // eval
  ...['eval_steps', 'eval_strategy', 'evals_per_epoch', 'val_set_size'],
  // max_length
  ...['model_max_length', 'max_seq_len'],
  // optim, optim_args, optim_target_modules
  ...['class_path', 'galore_layerwise', 'galore_target', 'galore_rank'],
  // generation, objective
  ...['use_vllm', 'num_generations', 'max_prompt_length', 'pref_loss'],
  // distributed, and the engines of the stack
  ...['distributed_type', 'num_machines', 'num_nodes', 'deepspeed', 'deepspeed_config_file', 'fsdp', 'fsdp_version'],
  ...['zero_stage', 'offload_optimizer_device', 'offload_param_device', 'fsdp_offload_params', 'device'],
  ...[
    'fsdp_sharding_strategy',
    'fsdp_reshard_after_forward',
    'fsdp_activation_checkpointing',
    'activation_cpu_offload',
  ],
]);
