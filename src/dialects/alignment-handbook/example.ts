import type { Example } from '../dialect.ts';

export const RECIPE_EXAMPLES: readonly Example[] = [
  {
    command: 'accelerate launch --num_processes 2 scripts/sft.py --config recipes/mine/sft.yaml',
    files: {
      'scripts/sft.py':
        'from alignment import ScriptArguments\nfrom trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser\n',
      'recipes/mine/sft.yaml': `model_name_or_path: mistralai/Mistral-7B-v0.1
torch_dtype: bfloat16
bf16: true
use_peft: true
lora_r: 16
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
gradient_checkpointing: true
max_length: 2048
output_dir: data/mine
`,
    },
  },
];
