import type { Example } from '../dialect.ts';

/** A run of somebody's own trainer, every setting that may change as a placeholder. */
export const NATIVE_EXAMPLE: Example = {
  command: 'snug run snug.yaml',
  files: {
    'snug.yaml': `command: >-
  python train.py --bs {per_device_train_batch_size} --accum {gradient_accumulation_steps}
  --eval-bs {per_device_eval_batch_size} --length {max_length} --ckpt {gradient_checkpointing}
  --optim {optim} --attn {attn_implementation} --loss {loss_impl} --dtype {dtype}
  --amp {mixed_precision} --method {method} --rank {lora.r} --bits {quantization.bits}
resume: "--resume {checkpoint}"
model: meta-llama/Llama-3.1-8B
method: lora
lora: { r: 16, lora_alpha: 32, target_modules: all-linear }
dtype: bf16
mixed_precision: bf16
per_device_train_batch_size: 4
per_device_eval_batch_size: 4
eval: true
gradient_accumulation_steps: 4
max_length: 2048
`,
  },
};
