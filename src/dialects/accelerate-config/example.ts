import type { Example } from '../dialect.ts';

export const ACCELERATE_CONFIG_EXAMPLES: readonly Example[] = [
  {
    command: 'accelerate launch --config_file a.yaml train.py --output_dir out',
    files: {
      'a.yaml': `compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
mixed_precision: bf16
num_machines: 1
num_processes: 2
`,
    },
  },
];
