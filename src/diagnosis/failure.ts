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

/**
 * What else the traceback runs through, or stands around the line: an inference engine beside the trainer, page-locked host memory,
 * log-probabilities of whole sequences (logits of every position), packed rows, one copy per rank, data being prepared, a search
 * for the batch size that catches errors itself, semaphores and segments of shared memory.
 */
export type Trait =
  | 'vllm'
  | 'pinned-memory'
  | 'sequence-logits'
  | 'packed-rows'
  | 'rank-copies'
  | 'preparing-data'
  | 'batch-search'
  | 'shared-memory';

export interface EvidenceLine {
  /** 1-based line of the attempt's output. */
  readonly line: number;
  readonly text: string;
  /** The file it stands in, where several were read. */
  readonly source?: string;
  readonly rank: number | undefined;
  readonly stream: 'stdout' | 'stderr';
  /** Id of the signature that matched; absent in evidence put together by hand: then the text is matched again. */
  readonly signature?: string;
  /** When it was written, as far as the line itself or one before it says; milliseconds, the log's own clock. */
  readonly timeMs?: number;
  /** Phase the traceback above the line shows. */
  readonly phase?: FailurePhase;
  readonly traits?: readonly Trait[];
  /** Steps of training made before the line, as far as progress bars tell. */
  readonly stepsBefore?: number;
  /** `true`: the place of the text is doubtful (indented, a prefix seen on no other line); counts only if nothing better is there. */
  readonly weak?: boolean;
  /** `true`: training went on after the line, so it did not end the run. */
  readonly followedByProgress?: boolean;
}

/** Why an attempt ended, by evidence. */
export interface Failure {
  /** What the cause ran through or stood in; absent: nothing that matters. */
  readonly traits?: readonly Trait[];
  /** Other programs on the card as the allocator listed them; absent: it lists none, or they are not the cause. */
  readonly holders?: readonly { readonly pid: number; readonly bytes: number }[];
  readonly kind: FailureKind;
  readonly resource: Resource;
  readonly phase: FailurePhase;
  readonly confidence: 'high' | 'medium' | 'low';
  readonly candidates: readonly FailureKind[];
  readonly evidence: readonly EvidenceLine[];
  readonly numbers: FailureNumbers;
}
