/** Owners of device memory at the peak; together they make up the device peak. */
export const TERM_NAMES = [
  'weights',
  'gradients',
  'optimizerStates',
  'activations',
  'logits',
  'temporaryBuffers',
  'communicationBuffers',
  'inferenceEngine',
  'fragmentation',
  'cudaContext',
] as const;
export type TermName = (typeof TERM_NAMES)[number];

export type Phase = 'load' | 'forward' | 'backward' | 'optimizer' | 'eval' | 'save' | 'resume';

export interface Interval {
  readonly lowBytes: number;
  readonly highBytes: number;
}

/** Device memory of one GPU, integer bytes. Three peaks, never mixed up. */
export interface VramEstimate {
  /** What `torch.cuda.max_memory_allocated()` reports. */
  readonly allocatedPeakBytes: number;
  /** What `torch.cuda.max_memory_reserved()` reports. */
  readonly reservedPeakBytes: number;
  /** What nvidia-smi shows for the process. */
  readonly devicePeakBytes: number;
  /** Interval around the device peak. */
  readonly lowBytes: number;
  readonly highBytes: number;
  /** Intervals around the other two counters. */
  readonly intervals?: { readonly allocated: Interval; readonly reserved: Interval };
  readonly peakPhase: Phase;
  /** Adds up to `devicePeakBytes`. */
  readonly terms: Readonly<Record<TermName, number>>;
}

/** Host memory of all ranks of one node, integer bytes. */
export interface RamEstimate {
  /** Highest resident set of the process tree, each page once. */
  readonly peakBytes: number;
  /** The peak without the pages of mapped files, which the kernel takes back: what has to be free. */
  readonly neededBytes: number;
  /**
   * Owners at the peak; add up to `peakBytes`. Those that are nothing are absent.
   * - `pythonStack`: the interpreter and what it has imported, per rank; `launcher`: the same of torchrun or accelerate
   * - `cudaRuntime`: libraries and driver context of a CUDA process, per rank
   * - `loading`: weights that are copied or converted while they are loaded; `mappedCheckpoint`: pages of safetensors files
   * - `dataloaderWorkers`: forked workers and the batches they have ready; `pinnedBuffers`: page-locked batches
   * - `offloadedStates`, `offloadedGradients`, `offloadedParameters`, `offloadedActivations`: what an engine or an optimizer keeps on
   *   the host; `pinnedRounding`: what page-locked buffers are rounded up by
   * - `saving`: weights copied to the host to be written
   */
  readonly terms: Readonly<Record<string, number>>;
}

export interface MemoryEstimate {
  readonly params: { readonly total: number; readonly trainable: number };
  readonly vram: VramEstimate;
  readonly ram: RamEstimate;
  readonly assumptions: readonly string[];
}

/** What a card leaves for the run, bytes. */
export interface MemoryBudget {
  readonly capacityBytes: number;
  readonly usedByOthersBytes: number;
  readonly headroomBytes: number;
  /** capacity − others − headroom; the device peak must not exceed it. */
  readonly usableBytes: number;
}

/** `headroom` is a share of the capacity, 0.05. */
export function memoryBudget(capacityBytes: number, usedByOthersBytes: number, headroom: number): MemoryBudget {
  const headroomBytes = Math.ceil(capacityBytes * headroom);
  return {
    capacityBytes,
    usedByOthersBytes,
    headroomBytes,
    usableBytes: Math.max(0, capacityBytes - usedByOthersBytes - headroomBytes),
  };
}
