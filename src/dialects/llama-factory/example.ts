import type { Example } from '../dialect.ts';

const LORA = `model_name_or_path: Qwen/Qwen3-4B
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
dataset: identity
template: qwen3
cutoff_len: 2048
output_dir: saves/qwen3-4b
per_device_train_batch_size: 4
gradient_accumulation_steps: 8
bf16: true
`;

export const LLAMA_FACTORY_EXAMPLES: readonly Example[] = [
  { command: 'llamafactory-cli train lora.yaml', files: { 'lora.yaml': LORA } },
  {
    command: 'llamafactory-cli train full.yaml per_device_train_batch_size=2 optim=adamw_torch',
    files: { 'full.yaml': LORA.replace('lora\n', 'full\n').replace(/^lora_.*\n/gm, '') },
  },
];
