export type FailureKind =
  | 'vram_capacity'
  | 'vram_fragmentation'
  | 'vram_other_process'
  | 'vram_leak_growth'
  | 'vram_eval_spike'
  | 'vram_checkpoint_save_spike'
  | 'vram_load_spike'
  | 'nccl_hang_after_oom'
  | 'host_ram'
  | 'dataloader_ram'
  | 'cgroup'
  | 'swap_thrash'
  | 'shm'
  | 'disk'
  | 'not_memory'
  | 'config_bug'
  | 'unknown';

export type Resource = 'vram' | 'host_ram' | 'shm' | 'disk' | 'none' | 'unknown';
export type FailurePhase = 'load' | 'forward' | 'backward' | 'optimizer' | 'eval' | 'save' | 'resume' | 'unknown';

/** What the allocator said of itself, bytes; absent where the text has no such number. */
export interface FailureNumbers {
  readonly triedBytes?: number;
  readonly totalBytes?: number;
  readonly freeBytes?: number;
  readonly allocatedBytes?: number;
  readonly reservedUnallocatedBytes?: number;
  readonly othersBytes?: number;
}

export interface EvidenceLine {
  /** 1-based line of the attempt's output. */
  readonly line: number;
  readonly text: string;
  readonly rank: number | undefined;
  readonly stream: 'stdout' | 'stderr';
}

/** Why an attempt ended, by evidence. */
export interface Failure {
  readonly kind: FailureKind;
  readonly resource: Resource;
  readonly phase: FailurePhase;
  readonly confidence: 'high' | 'medium' | 'low';
  readonly candidates: readonly FailureKind[];
  readonly evidence: readonly EvidenceLine[];
  readonly numbers: FailureNumbers;
}
