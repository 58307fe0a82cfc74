import { MiB } from '../core/index.ts';

/** What is known of the card. */
export interface DeviceFacts {
  readonly computeCapability?: { readonly major: number; readonly minor: number };
  readonly name?: string;
  /** All of the card's memory, bytes. */
  readonly capacityBytes?: number;
}

export interface ContextBytes {
  readonly bytes: number;
  readonly lowBytes: number;
  readonly highBytes: number;
}

/**
 * Device memory of one process outside PyTorch's allocator, MiB: CUDA context with lazily loaded kernels, cuBLAS handles
 * and workspaces (8 MiB, 32 MiB from Hopper on, `CUBLAS_WORKSPACE_CONFIG`). Typical figures of nvidia-smi minus reserved:
 * 350–550 before Hopper, 500–800 from it on (CUDA 12 and 13).
 */
const BY_GENERATION: readonly (readonly [major: number, bytes: number, low: number, high: number])[] = [
  [12, 620, 450, 950],
  [10, 620, 450, 950],
  [9, 580, 430, 900],
  [8, 480, 330, 750],
  [7, 420, 280, 650],
  [0, 380, 250, 600],
];
const UNKNOWN = [500, 250, 950] as const;

type Figures = readonly [mebibytes: number, low: number, high: number];

/**
 * NCCL's channels and buffers, and what a second stream's kernels load, MiB: nvidia-smi minus reserved of published FSDP runs on two
 * and on four cards. Of more than two ranks each has a neighbour on either side, which its rings and trees hold buffers for. The mean error
 * is the same from 900 to 1100 and from 1600 to 1900; the upper end is taken, as too little ends a run.
 */
const NCCL_OF_TWO: Figures = [1100, 200, 2200];
const NCCL: Figures = [1800, 400, 3000];

/**
 * What QLoRA under FSDP shows in nvidia-smi beyond LoRA, MiB, bitsandbytes and GPTQ alike. It is no memory of PyTorch's allocator, and
 * its cause is not known: between 1.3 and 2.7 GiB in published runs of models from 7 B on, hardly anything for one of 3 B, and taken
 * from the upper end, as too little ends a run.
 */
const QUANTISED_SHARDS: Figures = [2500, 300, 4000];
/** Never more than this part of the quantised weights, which a model of 7 B reaches. */
const OF_QUANTISED = 0.7;

const NOTHING: Figures = [0, 0, 0];

/** `shardedBytes`: quantised weights of the whole model that FSDP has sharded; 0: none. */
export function contextBytes(device: DeviceFacts, ranks: number, shardedBytes: number): ContextBytes {
  const major = device.computeCapability?.major;
  const known = major === undefined ? undefined : BY_GENERATION.find(([from]) => major >= from);
  const [bytes, low, high] = known ? [known[1], known[2], known[3]] : UNKNOWN;
  const nccl = ranks > 2 ? NCCL : ranks > 1 ? NCCL_OF_TWO : NOTHING;
  const most = Math.round((OF_QUANTISED * shardedBytes) / MiB);
  const shards = QUANTISED_SHARDS.map((figure) => Math.min(figure, most));
  return {
    bytes: (bytes + nccl[0] + shards[0]!) * MiB,
    lowBytes: (low + nccl[1] + shards[1]!) * MiB,
    highBytes: (high + nccl[2] + shards[2]!) * MiB,
  };
}

/**
 * cuBLAS's workspace, which PyTorch's allocator hands out, one a thread that multiplies: 32 MiB on Hopper and Blackwell, 8.125 MiB
 * before (aten/src/ATen/cuda/CublasHandlePool.cpp `parseChosenWorkspaceSize`).
 */
export const workspaceBytes = ({ computeCapability }: DeviceFacts): number =>
  (computeCapability?.major ?? 8) >= 9 ? 32 * MiB : 8.125 * MiB;
