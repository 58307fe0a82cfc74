import { type Diagnostic, formatBytes, warning } from '../core/index.ts';
import type { Hardware } from '../hardware/index.ts';
import { readyBatchBytes } from '../memory/index.ts';
import type { PlanValues } from '../spec/index.ts';

/**
 * Whether `/dev/shm` holds the batches that DataLoader workers hand over; a container has 64 MiB of it unless told otherwise, and a worker
 * that finds it full is killed by SIGBUS. Batches of token ids alone: images and sound need more.
 */
export function sharedMemoryWarnings(
  { sharedMemory, source }: Hardware,
  { dataloaderNumWorkers: workers, perDeviceTrainBatchSize, maxLength, distributed }: PlanValues,
): readonly Diagnostic[] {
  if (!sharedMemory || source === 'planned' || workers === 0) return [];
  const ranks = distributed.strategy === 'dp' ? 1 : distributed.processesPerNode;
  const needed = readyBatchBytes({ workers, ranks, batchTokens: perDeviceTrainBatchSize * maxLength });
  if (needed <= sharedMemory.freeBytes) return [];
  return [
    warning(
      'shm-short',
      `${workers} DataLoader workers a process hand over ${formatBytes(needed)} of batches in /dev/shm, and ${formatBytes(sharedMemory.freeBytes)} are free`,
      {
        location: '/dev/shm',
        notes: [`its size is ${formatBytes(sharedMemory.totalBytes)}; a worker that finds it full dies of SIGBUS`],
        help: 'docker run --shm-size=8g, or in Kubernetes an emptyDir with medium: Memory at /dev/shm, or dataloader_num_workers: 0',
      },
    ),
  ];
}
