import type { Example } from '../dialect.ts';

const LORA = `model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: [q_proj, k_proj, v_proj, output_proj]
  apply_lora_to_mlp: True
  lora_rank: 16
  lora_alpha: 32
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 2048
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: /models/Llama-3.2-1B
dataset:
  _component_: torchtune.datasets.alpaca_dataset
  packed: False
batch_size: 4
gradient_accumulation_steps: 2
optimizer:
  _component_: torch.optim.AdamW
  fused: True
loss:
  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss
enable_activation_checkpointing: False
dtype: bf16
output_dir: out
`;

const FULL = LORA.replace('.lora_llama', '.llama').replace(/ {2}(?:lora|apply_lora)_.*\n/g, '');

/** A config of one's own for adapters, the same for all weights over several GPUs, and a config that comes with torchtune. */
export const TORCHTUNE_EXAMPLES: readonly Example[] = [
  { command: 'tune run lora_finetune_single_device --config mine.yaml batch_size=2', files: { 'mine.yaml': LORA } },
  {
    command: 'tune run --nproc_per_node 2 full_finetune_distributed --config mine.yaml fsdp_cpu_offload=True',
    files: { 'mine.yaml': FULL },
  },
  {
    command: 'tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device tokenizer.max_seq_len=2048',
  },
];
