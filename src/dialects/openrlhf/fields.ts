import type { FieldKind, Grammar } from '../hf-argparser/grammar.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Fields that bear on memory: name since 0.11, and name before. Source: openrlhf/cli/train_*.py of 0.11.2, 0.9.10, 0.6.4. */
export const NAMES = {
  model: ['model.model_name_or_path', 'pretrain'],
  micro: ['train.micro_batch_size', 'micro_train_batch_size'],
  batch: ['train.batch_size', 'train_batch_size'],
  length: ['data.max_len', 'max_len'],
  checkpointing: ['model.gradient_checkpointing_enable', 'gradient_checkpointing'],
  reentrant: ['model.gradient_checkpointing_reentrant', 'gradient_checkpointing_use_reentrant'],
  stage: ['ds.zero_stage', 'zero_stage'],
  paramDtype: ['ds.param_dtype', 'param_dtype'],
  adamOffload: ['ds.adam_offload', 'adam_offload'],
  attention: ['ds.attn_implementation', 'attn_implementation'],
  liger: ['ds.use_liger_kernel', 'use_liger_kernel'],
  loadIn4bit: ['ds.load_in_4bit', 'load_in_4bit'],
  rank: ['ds.lora.rank', 'lora_rank'],
  alpha: ['ds.lora.alpha', 'lora_alpha'],
  targets: ['ds.lora.target_modules', 'target_modules'],
  dropout: ['ds.lora.dropout', 'lora_dropout'],
  packing: ['ds.packing_samples', 'packing_samples'],
  ring: ['ds.ring_attn_size', 'ring_attn_size'],
  tensor: ['ds.tensor_parallel_size', 'ds_tensor_parallel_size'],
  evalData: ['eval.dataset', 'eval_dataset'],
  output: ['ckpt.output_dir', 'save_path'],
  workers: ['data.dataloader_num_workers', 'dataloader_num_workers'],
  pretrainMode: ['model.pretrain_mode_enable', 'pretrain_mode'],
  maxNorm: ['max_norm', 'max_norm'],
  optimizer: ['optim', 'optim'],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

export type Name = keyof typeof NAMES;

/** Switches of releases before 0.8, which decide what 0.8 has one word for. */
export const OLD_SWITCHES = ['bf16', 'flash_attn'];

const BOOLS = split(`
  model.gradient_checkpointing_enable gradient_checkpointing model.gradient_checkpointing_reentrant
  gradient_checkpointing_use_reentrant ds.adam_offload adam_offload ds.use_liger_kernel use_liger_kernel
  ds.load_in_4bit load_in_4bit ds.packing_samples packing_samples model.pretrain_mode_enable pretrain_mode bf16 flash_attn
  ds.overlap_comm overlap_comm ref.offload ref_offload
  ckpt.load_enable load_checkpoint ckpt.save_hf save_hf_ckpt ckpt.disable_ds disable_ds_ckpt data.apply_chat_template
  apply_chat_template data.multiturn multiturn ds.deepcompile deepcompile torch_compile use_ms
  train.full_determinism_enable full_determinism ds.use_universal_ckpt use_ds_universal_ckpt
`);

/** Fields without effect on the memory of the step. */
const IDLE = split(`
  ckpt.save_steps save_steps logger.logging_steps logging_steps eval.steps eval_steps ckpt.path ckpt_path ckpt.max_num
  max_ckpt_num ckpt.max_mem max_ckpt_mem train.seed seed train.max_epochs max_epochs learning_rate lr_scheduler
  lr_warmup_ratio min_lr_ratio l2 adam.lr adam.eps adam.weight_decay data.dataset dataset data.dataset_probs dataset_probs
  data.dataset_split dataset_split train_split eval.split eval_split data.max_samples max_samples data.input_key input_key
  data.output_key output_key data.input_template input_template data.tokenizer_chat_template tokenizer_chat_template
  data.prompt_key prompt_key data.chosen_key chosen_key data.rejected_key rejected_key logger.wandb.key use_wandb
  logger.wandb.org wandb_org logger.wandb.group wandb_group logger.wandb.project wandb_project logger.wandb.run_name
  wandb_run_name logger.tensorboard_dir use_tensorboard local_rank model.beta beta data.disable_fast_tokenizer
  disable_fast_tokenizer ckpt.load_enable load_checkpoint ckpt.save_hf save_hf_ckpt ckpt.disable_ds disable_ds_ckpt
  data.apply_chat_template apply_chat_template data.multiturn multiturn use_ms
`);

const LISTS = ['ds.lora.target_modules', 'target_modules', 'adam.betas', 'adam_betas'];

export const IDLE_FIELDS: ReadonlySet<string> = new Set([...IDLE, 'adam.betas', 'adam_betas']);

const fields = new Map<string, FieldKind>();
for (const name of [...Object.values(NAMES).flat(), ...IDLE]) fields.set(name, 'value');
for (const name of BOOLS) fields.set(name, 'bool');
for (const name of LISTS) fields.set(name, 'list');

/** Its parsers take other fields, too, which are named as not read. */
export const OPENRLHF_GRAMMAR: Grammar = { fields, negatable: new Set(), open: true };
