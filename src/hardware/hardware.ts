/** One GPU as the driver reports it. */
export interface Gpu {
  readonly index: number;
  readonly uuid: string;
  readonly name: string;
  /** `memory.total`, bytes; undefined when the driver prints `[N/A]`. */
  readonly totalBytes: number | undefined;
  readonly usedBytes: number | undefined;
  readonly freeBytes: number | undefined;
  /** 8.6 → `{ major: 8, minor: 6 }`; undefined: the driver did not say. */
  readonly computeCapability: { readonly major: number; readonly minor: number } | undefined;
  /** The card has no memory of its own (GB10, Jetson): its figures are the host's, one budget for both. */
  readonly sharesHostMemory?: true;
}

export interface HostMemory {
  /** MemTotal, bytes. */
  readonly totalBytes: number;
  /** The least of MemAvailable, what every cgroup above this process leaves, and Slurm's limit for the job, bytes. */
  readonly availableBytes: number;
  /** What decided `availableBytes`: `MemAvailable`, the cgroup's path, or the variable in which Slurm states its limit. */
  readonly limitedBy: string;
  readonly swapTotalBytes: number;
  readonly swapFreeBytes: number;
}

/** What a run can use. `planned`: a card named with --gpu, nothing was measured of it; the host is this machine all the same. */
export interface Hardware {
  readonly gpus: readonly Gpu[];
  readonly source: 'nvidia-smi' | 'rocm-smi' | 'amd-smi' | 'planned' | 'none';
  /** Why there are no GPUs, or what the driver said oddly. */
  readonly notes: readonly string[];
  readonly host: HostMemory | undefined;
  readonly sharedMemory: { readonly totalBytes: number; readonly freeBytes: number } | undefined;
  /** Volume of the output folder. */
  readonly disk: { readonly freeBytes: number; readonly totalBytes: number } | undefined;
}
