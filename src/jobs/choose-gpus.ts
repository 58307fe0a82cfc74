import { type Diagnostic, error, formatBytes, note, warning } from '../core/index.ts';
import type { Gpu, Hardware } from '../hardware/index.ts';
import { type MemoryBudget, memoryBudget } from '../memory/index.ts';
import type { Distributed } from '../spec/index.ts';

/** The card that decides, and what it leaves for the run. */
export interface ChosenGpu {
  readonly gpu: Gpu;
  /** Every card the run uses. */
  readonly gpus: readonly Gpu[];
  readonly budget: MemoryBudget;
  readonly diagnostics: readonly Diagnostic[];
}

/** Bytes nobody else holds; what the driver keeps for itself (total − used − free) is gone as well. */
const freeOf = (gpu: Gpu): number | undefined =>
  gpu.freeBytes ?? (gpu.totalBytes === undefined ? undefined : gpu.totalBytes - (gpu.usedBytes ?? 0));

/** Memory of others worth a word: more than a desktop's own few hundred MiB. */
const WORTH_A_NOTE = 1024 ** 3;

/**
 * The cards the run's processes land on, in order, and the one with the least free memory: every rank needs the same, so
 * the smallest decides. Undefined with an error when no card reports its size.
 */
export function chooseGpu(
  hardware: Hardware,
  distributed: Distributed,
  headroom: number,
): ChosenGpu | readonly Diagnostic[] {
  const wanted = distributed.processesPerNode;
  const used = hardware.gpus.slice(0, wanted);
  const sized = used.filter((gpu) => gpu.totalBytes !== undefined && freeOf(gpu) !== undefined);
  if (sized.length === 0) {
    return [
      error(
        'no-gpu',
        hardware.gpus.length > 0 ? 'the driver does not say how much memory the GPU has' : 'no GPU was found',
        {
          notes: hardware.notes,
          help: 'name the card to plan for: --gpu rtx-3090, --gpu a100-40gb:8, --gpu 24GiB',
        },
      ),
    ];
  }
  const gpu = sized.reduce((least, next) => (freeOf(next)! < freeOf(least)! ? next : least));
  const others = Math.max(0, gpu.totalBytes! - freeOf(gpu)!);
  const diagnostics: Diagnostic[] = [];
  if (wanted > hardware.gpus.length) {
    diagnostics.push(
      warning(
        'too-few-gpus',
        `the launch starts ${wanted} processes a node, but ${hardware.gpus.length} GPU${hardware.gpus.length === 1 ? ' is' : 's are'} visible`,
        {
          help:
            hardware.source === 'planned'
              ? `plan for as many cards: --gpu NAME:${wanted}`
              : 'start as many processes as there are GPUs, or make more visible with CUDA_VISIBLE_DEVICES',
        },
      ),
    );
  }
  if (others > WORTH_A_NOTE) {
    diagnostics.push(
      note('gpu-in-use', `other programs hold ${formatBytes(others)} of GPU ${gpu.index} (${gpu.name})`, {
        help: 'nvidia-smi lists them; what they hold is not counted on',
      }),
    );
  }
  return { gpu, gpus: used, budget: memoryBudget(gpu.totalBytes!, others, headroom), diagnostics };
}
