import type { Origin } from '../../spec/index.ts';
import type { FieldKind, Grammar } from '../hf-argparser/grammar.ts';

/** Source: autotrain/trainers/clm/params.py, cli/run_llm.py, trainers/clm/utils.py of 0.8.36. */
export const AUTOTRAIN: Origin = { kind: 'default', tool: 'autotrain', version: '0.8' };

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

const VALUES = split(`
  model project_name trainer batch_size gradient_accumulation block_size model_max_length mixed_precision quantization
  target_modules lora_r lora_alpha lora_dropout optimizer max_grad_norm save_total_limit valid_split eval_strategy
  distributed_backend backend
`);

/** Flags without effect on memory. */
export const IDLE: ReadonlySet<string> = new Set(
  split(`
    data_path train_split text_column rejected_text_column prompt_text_column lr epochs warmup_ratio scheduler
    weight_decay seed log logging_steps chat_template username token dpo_beta padding train push_to_hub add_eos_token
    merge_adapter
  `),
);

const BOOLS = split(`
  peft use_flash_attention_2 disable_gradient_checkpointing auto_find_batch_size unsloth train push_to_hub
  add_eos_token merge_adapter
`);

const fields = new Map<string, FieldKind>();
for (const name of [...VALUES, ...IDLE]) fields.set(name, 'value');
for (const name of BOOLS) fields.set(name, 'bool');

export const GRAMMAR: Grammar = { fields, negatable: new Set(), open: true };
