/**
 * The accelerate configs that TRL ships and `--accelerate_config NAME` means, as options of `accelerate launch`. `single_gpu`
 * says eight processes too, but distributed type NO starts one. Source: trl 1.13 accelerate_configs/*.yaml.
 */
export const ACCELERATE_CONFIGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  single_gpu: { num_processes: 1, num_machines: 1, mixed_precision: 'bf16' },
  multi_gpu: { multi_gpu: true, num_processes: 8, num_machines: 1, mixed_precision: 'bf16' },
  zero1: { use_deepspeed: true, zero_stage: 1, num_processes: 8, num_machines: 1, mixed_precision: 'bf16' },
  zero2: { use_deepspeed: true, zero_stage: 2, num_processes: 8, num_machines: 1, mixed_precision: 'bf16' },
  zero3: { use_deepspeed: true, zero_stage: 3, num_processes: 8, num_machines: 1, mixed_precision: 'bf16' },
  fsdp1: { use_fsdp: true, fsdp_version: 1, num_processes: 8, num_machines: 1, mixed_precision: 'bf16' },
  fsdp2: { use_fsdp: true, fsdp_version: 2, num_processes: 8, num_machines: 1, mixed_precision: 'bf16' },
};
