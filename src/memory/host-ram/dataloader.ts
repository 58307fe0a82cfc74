import { MiB } from '../../core/index.ts';
import { type HostInput, type HostTerms, pinnedSize } from './host-input.ts';

/**
 * Own pages of a forked worker, measured by `npm run bench:ram`: a few at the start, and once Python's garbage collector has been
 * through all objects (it writes to each one's header) most of the interpreter's heap. The rest stays shared with the rank.
 */
const WORKER = 110 * MiB;
/** Batches a worker reads ahead (torch DataLoader `prefetch_factor`). */
const PREFETCH = 2;
/** Columns of a batch, int64 each: ids, labels, attention mask. */
const COLUMNS = 3;
const INT64 = 8;

export interface LoaderInput {
  readonly workers: number;
  readonly prefetch?: number;
  readonly pinMemory: boolean;
  readonly ranks: number;
  /** Tokens of one batch. */
  readonly batchTokens: number;
}

/** Bytes of the batches that workers have ready in shared memory (`/dev/shm`), all ranks of a node; 0 without workers. */
export const readyBatchBytes = ({
  workers,
  prefetch = PREFETCH,
  ranks,
  batchTokens,
}: Omit<LoaderInput, 'pinMemory'>): number => workers * prefetch * COLUMNS * batchTokens * INT64 * ranks;

/** Workers, each with its pages and the batches it has ready in shared memory; pinned copies of the batches on their way. */
export function dataloader({ workers, prefetch = PREFETCH, pinMemory, ranks, batchTokens }: LoaderInput): HostTerms {
  const column = batchTokens * INT64;
  const ready = workers * prefetch;
  return {
    dataloaderWorkers:
      workers === 0 ? 0 : workers * WORKER * ranks + readyBatchBytes({ workers, prefetch, ranks, batchTokens }),
    // The pinning thread holds one batch beside those that wait in its queue, the step another one.
    pinnedBuffers: pinMemory ? (ready + 2) * COLUMNS * pinnedSize(column) * ranks : 0,
  };
}

/** The loader a run's settings ask for. */
export const loaderOf = ({ values, model }: HostInput): LoaderInput => ({
  workers: values.dataloaderNumWorkers,
  pinMemory: values.dataloaderPinMemory,
  ranks: values.distributed.strategy === 'dp' ? 1 : values.distributed.processesPerNode,
  batchTokens: values.perDeviceTrainBatchSize * model.rowsPerRow * values.maxLength,
});
