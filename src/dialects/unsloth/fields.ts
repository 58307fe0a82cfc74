import type { Origin } from '../../spec/index.ts';
import type { FieldKind } from '../hf-argparser/grammar.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** Defaults of unsloth-cli.py, the same since it came in 2024.8. Source: unsloth-cli.py. */
export const UNSLOTH: Origin = { kind: 'default', tool: 'unsloth-cli', version: '2025.11' };

/** Switches: there or not, without a value. */
export const SWITCHES = split(
  'load_in_4bit use_rslora use_dora packing save_model save_gguf push_model push_gguf raw_text_file',
);

/** Flags of unsloth-cli.py, a plain argparse: underscores only. */
export const UNSLOTH_FIELDS: ReadonlyMap<string, FieldKind> = new Map([
  ...split(`
    model_name max_seq_length dtype dataset r lora_alpha lora_dropout bias use_gradient_checkpointing random_state
    loftq_config per_device_train_batch_size per_device_eval_batch_size gradient_accumulation_steps warmup_steps max_steps
    learning_rate optim weight_decay lr_scheduler_type seed report_to logging_steps output_dir save_path save_method
    quantization hub_path hub_token chunk_size stride per_device_batch_size
  `).map((name): [string, FieldKind] => [name, 'value']),
  ...SWITCHES.map((name): [string, FieldKind] => [name, 'bool']),
]);
