import type { Example } from '../dialect.ts';

const LORA = `base_model: NousResearch/Meta-Llama-3-8B
datasets:
  - path: mhenrichsen/alpaca_2k_test
    type: alpaca
val_set_size: 0.05
output_dir: ./outputs/lora
adapter: lora
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_linear: true
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_torch_fused
learning_rate: 0.0002
bf16: auto
gradient_checkpointing: true
`;

export const AXOLOTL_EXAMPLES: readonly Example[] = [
  { command: 'axolotl train lora.yml', files: { 'lora.yml': LORA } },
  {
    command: 'accelerate launch --num_processes 2 -m axolotl.cli.train fft.yml --micro-batch-size 1',
    files: { 'fft.yml': LORA.replace(/^(?:adapter|lora_).*\n/gm, '') },
  },
];
