import type { Example } from '../dialect.ts';

export const ACCELERATE_EXAMPLES: readonly Example[] = [
  { command: 'accelerate launch --num_processes 2 --mixed_precision bf16 train.py --output_dir out' },
  {
    command: 'accelerate launch --config_file fsdp.yaml train.py --output_dir out',
    files: {
      'fsdp.yaml': `compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 2
fsdp_config:
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_offload_params: false
`,
    },
  },
];
