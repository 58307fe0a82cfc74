import type { Example } from '../dialect.ts';

const LORA = `checkpoint_dir: checkpoints/microsoft/phi-2
out_dir: out/lora-phi-2
precision: bf16-true
devices: 1
lora_r: 16
lora_alpha: 32
lora_query: true
lora_value: true
data:
  class_path: litgpt.data.Alpaca2k
  init_args:
    num_workers: 4
train:
  global_batch_size: 8
  micro_batch_size: 4
  epochs: 1
  max_seq_length: 512
optimizer:
  class_path: torch.optim.AdamW
  init_args:
    lr: 0.0002
`;

export const LITGPT_EXAMPLES: readonly Example[] = [
  { command: 'litgpt finetune_lora --config lora.yaml --train.micro_batch_size 2', files: { 'lora.yaml': LORA } },
  {
    command:
      'litgpt finetune_full meta-llama/Llama-3.2-1B --devices 2 --precision bf16-true --train.max_seq_length 1024',
  },
];
