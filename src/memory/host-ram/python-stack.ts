import { MiB } from '../../core/index.ts';

/**
 * Resident pages of one Python process by what it has imported, CPU builds, measured by `npm run bench:ram`: `own` are its own
 * pages, `files` those of shared libraries, which all processes of a node share.
 */
const IMPORTED = {
  python: { own: 4 * MiB, files: 6 * MiB },
  torch: { own: 144 * MiB, files: 76 * MiB },
  trainer: { own: 310 * MiB, files: 126 * MiB },
} as const;
export type Imports = keyof typeof IMPORTED;

/** What `ranks` processes with these imports take, bytes. */
export const pythonStack = (ranks: number, imports: Imports = 'trainer'): number =>
  IMPORTED[imports].own * ranks + IMPORTED[imports].files;

/** The launcher of several ranks (torchrun, accelerate launch) has imported torch itself; its libraries are the ranks' own. */
export const launcher = (ranks: number): number => (ranks > 1 ? IMPORTED.torch.own : 0);

/**
 * Host side of a CUDA process: the libraries of a CUDA build (cuBLAS, cuDNN, NCCL and torch's own kernels), the driver's
 * context, pinned staging. An assumption, not measured by `bench:ram`, which has no GPU: 1.8 GiB with lazily loaded kernels, as
 * PyTorch asks for since 1.13.
 */
export const cudaRuntime = (ranks: number): number => 1843 * MiB * ranks;
