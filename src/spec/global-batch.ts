import type { Distributed } from './training-spec.ts';

/** How many micro batches go into one step side by side: ranks, or the GPUs of one process under nn.DataParallel (`dp`). */
export const dataParallelSize = (distributed: Distributed): number => distributed.nodes * distributed.processesPerNode;

/** Rows per optimizer step: per-device batch × accumulation × data-parallel size. Never changes silently. */
export const globalBatchSize = (batch: {
  readonly perDeviceTrainBatchSize: number;
  readonly gradientAccumulationSteps: number;
  readonly distributed: Distributed;
}): number => batch.perDeviceTrainBatchSize * batch.gradientAccumulationSteps * dataParallelSize(batch.distributed);
