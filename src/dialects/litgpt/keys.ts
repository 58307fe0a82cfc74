import type { Origin } from '../../spec/index.ts';

const split = (words: string): readonly string[] => words.trim().split(/\s+/);

/** The same from 0.3.1 to 0.5.13. Source: litgpt/finetune/*.py, litgpt/pretrain.py, litgpt/args.py. */
export const LITGPT: Origin = { kind: 'default', tool: 'litgpt', version: '0.5.13' };

export type Task = 'lora' | 'full' | 'adapter' | 'adapter_v2' | 'pretrain';

/** What holds where a command is told nothing. */
export interface TaskDefaults {
  readonly globalBatchSize: number;
  readonly microBatchSize: number;
  readonly devices: number | 'auto';
  readonly maxNorm: number;
  readonly outDir: string;
  readonly numWorkers: number;
}

const finetuning = (outDir: string): TaskDefaults => ({
  globalBatchSize: 16,
  microBatchSize: 1,
  devices: 1,
  maxNorm: 0,
  outDir,
  numWorkers: 4,
});

export const TASKS: Readonly<Record<Task, TaskDefaults>> = {
  lora: finetuning('out/finetune/lora'),
  full: finetuning('out/finetune/full'),
  adapter: finetuning('out/finetune/adapter'),
  adapter_v2: finetuning('out/finetune/adapter-v2'),
  pretrain: {
    globalBatchSize: 512,
    microBatchSize: 4,
    devices: 'auto',
    maxNorm: 1,
    outDir: 'out/pretrain',
    numWorkers: 8,
  },
};

/** Keys at the top of a config, of all commands together. */
export const LITGPT_KEYS: ReadonlySet<string> = new Set(
  split(`
    checkpoint_dir out_dir precision quantize devices num_nodes lora_r lora_alpha lora_dropout lora_query lora_key
    lora_value lora_projection lora_mlp lora_head data train eval log optimizer logger_name seed access_token resume
    model_name model_config initial_checkpoint_dir tokenizer_dir io
  `),
);

/** Keys of `train:` and `eval:`. */
export const TRAIN_KEYS: ReadonlySet<string> = new Set(
  split(`
    save_interval log_interval global_batch_size micro_batch_size lr_warmup_steps lr_warmup_fraction epochs max_tokens
    max_steps max_time max_seq_length tie_embeddings max_norm min_lr learning_rate weight_decay beta1 beta2 epoch_size
    interval max_new_tokens max_iters initial_validation final_validation evaluate_example
  `),
);
