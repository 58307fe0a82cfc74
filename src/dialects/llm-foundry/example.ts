import type { Example } from '../dialect.ts';

const FULL = `variables:
  max_seq_len: 4096
max_seq_len: \${variables.max_seq_len}
model:
  name: hf_causal_lm
  pretrained: true
  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B
  use_flash_attention_2: true
tokenizer:
  name: meta-llama/Llama-3.1-8B
  kwargs:
    model_max_length: \${variables.max_seq_len}
train_loader:
  name: finetuning
  dataset:
    hf_name: mosaicml/dolly_hhrlhf
    max_seq_len: \${variables.max_seq_len}
  num_workers: 8
optimizer:
  name: decoupled_adamw
  lr: 1.0e-5
algorithms:
  gradient_clipping:
    clipping_type: norm
    clipping_threshold: 1.0
max_duration: 1ep
global_train_batch_size: 64
device_train_microbatch_size: 4
device_eval_batch_size: 4
precision: amp_bf16
fsdp_config:
  sharding_strategy: FULL_SHARD
  mixed_precision: PURE
  activation_checkpointing: true
  activation_checkpointing_reentrant: false
`;

export const FOUNDRY_EXAMPLES: readonly Example[] = [
  { command: 'composer -n 2 train/train.py full.yaml', files: { 'full.yaml': FULL } },
  {
    command: 'composer -c llmfoundry train lora.yaml device_train_microbatch_size=2',
    files: {
      'lora.yaml': FULL.replace(
        '  use_flash_attention_2: true\n',
        '  peft_config:\n    peft_type: LORA\n    task_type: CAUSAL_LM\n    r: 16\n    lora_alpha: 32\n    target_modules: all-linear\n',
      ),
    },
  },
];
