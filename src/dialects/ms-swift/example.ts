import type { Example } from '../dialect.ts';

const LORA = `model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: bfloat16
tuner_type: lora
lora_rank: 16
lora_alpha: 32
dataset:
  - swift/self-cognition
max_length: 2048
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
output_dir: output
`;

export const SWIFT_EXAMPLES: readonly Example[] = [
  { command: 'swift sft lora.yaml --per_device_train_batch_size 4', files: { 'lora.yaml': LORA } },
  {
    command:
      'NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-1.5B --train_type full --dataset d.jsonl --max_length 1024 --attn_impl flash_attn --deepspeed zero2',
  },
];
