import type { Example } from '../dialect.ts';

export const TRL_EXAMPLES: readonly Example[] = [
  {
    command: 'trl sft --config sft.yaml',
    files: {
      'sft.yaml': `model_name_or_path: Qwen/Qwen2.5-1.5B
dataset_name: trl-lib/Capybara
dtype: bfloat16
use_peft: true
lora_r: 16
per_device_train_batch_size: 4
gradient_accumulation_steps: 4
max_length: 2048
output_dir: out
`,
    },
  },
  {
    command:
      'accelerate launch --num_processes 2 trl/scripts/dpo.py --model_name_or_path Qwen/Qwen2.5-1.5B --dtype bfloat16 --per_device_train_batch_size 2',
  },
  { command: 'trl grpo --model_name_or_path Qwen/Qwen2.5-1.5B --num_generations 4 --per_device_train_batch_size 8' },
];
