import { bytesOf, type Diagnostic, formatBytes, warning } from '../core/index.ts';
import type { Hardware } from '../hardware/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import type { PlanValues } from '../spec/index.ts';

/** What one checkpoint writes at least, bytes: the trained weights in their dtype, and the optimizer's states of all ranks. */
export function checkpointBytes(values: PlanValues, { params, vram }: MemoryEstimate): number {
  const full = values.method === 'full';
  const width = bytesOf(full ? values.dtype : (values.lora?.adapterDtype ?? 'fp32'));
  const { strategy, processesPerNode, nodes, offload } = values.distributed;
  const shards = strategy === 'none' || strategy === 'dp' || strategy === 'ddp' ? 1 : processesPerNode * nodes;
  const states = offload.includes('optimizer') ? 0 : vram.terms.optimizerStates * shards;
  return (full ? params.total : params.trainable) * width + states;
}

/**
 * Whether the output folder's volume holds the checkpoints that are kept: the limit, and the one that is written before the
 * oldest goes (transformers' `_rotate_checkpoints` runs after a save). Without a limit two have to fit at least.
 */
export function diskWarnings(
  { disk, source }: Hardware,
  values: PlanValues,
  estimate: MemoryEstimate,
): readonly Diagnostic[] {
  if (!disk || source === 'planned') return [];
  const one = checkpointBytes(values, estimate);
  const kept = values.saveTotalLimit;
  const needed = one * ((kept ?? 1) + 1);
  if (needed <= disk.freeBytes) return [];
  return [
    warning(
      'disk-short',
      `checkpoints may need ${formatBytes(needed)} of disk, and ${formatBytes(disk.freeBytes)} are free`,
      {
        notes: [
          `one is at least ${formatBytes(one)}, weights and optimizer states`,
          kept === null
            ? 'save_total_limit is not set, so every one of them is kept'
            : `save_total_limit ${kept} keeps ${kept}, and one more while it is written`,
        ],
        help: 'save_total_limit: 1, save_only_model: true, or an output_dir on a larger volume',
      },
    ),
  ];
}
