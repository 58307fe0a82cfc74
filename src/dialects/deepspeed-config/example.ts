import type { Example } from '../dialect.ts';

export const DEEPSPEED_CONFIG_EXAMPLES: readonly Example[] = [
  {
    command:
      'torchrun --nproc-per-node 2 train.py --deepspeed ds.json --per_device_train_batch_size 4 --output_dir out',
    files: {
      'ds.json': `{
  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}},
  "bf16": {"enabled": true},
  "gradient_clipping": 1.0,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 1
}
`,
    },
  },
];
