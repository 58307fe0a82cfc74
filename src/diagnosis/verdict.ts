import type { Failure } from './failure.ts';

/** What is to be done about a failure, in one word. */
export type Verdict =
  | 'upgrade_vram'
  | 'add_ram'
  | 'fix_config'
  | 'free_gpu'
  | 'set_alloc_conf'
  | 'increase_shm'
  | 'free_disk'
  | 'retry_smaller'
  | 'not_oom'
  | 'cannot_tell';

/** Memory that no batch size moves: optimizer states; and memory that a change of the loss or of packing moves best. */
function ofCapacity({ phase, traits = [] }: Failure): Verdict {
  const byConfig = phase === 'optimizer' || traits.includes('sequence-logits') || traits.includes('packed-rows');
  return byConfig ? 'fix_config' : 'retry_smaller';
}

/**
 * Host RAM that several ranks, a preparation of data or one huge array fill is brought down by settings; what an offload, a limit or
 * a loader needs by design is a matter of more RAM.
 */
function ofHostRam({ evidence, traits = [] }: Failure): Verdict {
  const [main] = evidence;
  const bySetting =
    traits.includes('rank-copies') ||
    traits.includes('preparing-data') ||
    traits.includes('pinned-memory') ||
    main?.signature === 'numpy-memory-error' ||
    main?.signature === 'worker-process-died' ||
    main?.signature === 'pinned-host-memory';
  return bySetting ? 'fix_config' : 'add_ram';
}

/** The verdict that the evidence of a failure supports; whether a larger card is needed takes a plan to say. */
export function verdictOf(failure: Failure): Verdict {
  switch (failure.kind) {
    case 'vram_capacity':
      return ofCapacity(failure);
    case 'vram_fragmentation':
      return 'set_alloc_conf';
    case 'vram_other_process':
      return 'free_gpu';
    case 'vram_leak_growth':
    case 'nccl_hang_after_oom':
      return 'retry_smaller';
    case 'vram_eval_spike':
    case 'vram_checkpoint_save_spike':
    case 'vram_load_spike':
      return 'fix_config';
    case 'config_bug':
      return failure.traits?.includes('batch-search') ? 'retry_smaller' : 'fix_config';
    case 'host_ram':
    case 'swap_thrash':
      return ofHostRam(failure);
    case 'dataloader_ram':
    case 'cgroup':
      return 'add_ram';
    case 'shm':
      return 'increase_shm';
    case 'disk':
      return 'free_disk';
    case 'not_memory':
      return 'not_oom';
    case 'unknown':
      return 'cannot_tell';
  }
}
