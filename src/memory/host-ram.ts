import { GiB, MiB } from '../core/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { RamEstimate } from './estimate.ts';
import { isBefore } from './versions.ts';

export interface HostInput {
  readonly values: PlanValues;
  /** The model as it is loaded, bytes. */
  readonly modelBytes: number;
  /** What is written at a save: the trained weights of a full run, the adapter else. */
  readonly savedBytes: number;
  /** Weights and states that live on the host, bytes of one rank. */
  readonly offloadedBytes: number;
  /** Boundary activations that live on the host, bytes of one rank. */
  readonly offloadedActivationBytes: number;
}

/** Python with torch, CUDA libraries and transformers loaded: resident size of one rank. */
const PYTHON_STACK = 2.2 * GiB;
/** A forked worker's own pages, and two batches it holds ready. */
const WORKER = 350 * MiB;
/** Bytes of one token in a batch: ids, labels, mask as int64. */
const TOKEN_BYTES = 24;

/**
 * Host memory of one node by cause. The three stages do not overlap, so the largest one counts: loading (the model in every
 * rank, unless the engine loads it once), training (workers, pinned and offloaded memory), saving (one shard of a file).
 */
export function hostRam(input: HostInput): RamEstimate {
  const { values } = input;
  const { processesPerNode: ranks, strategy } = values.distributed;
  const pythonStack = PYTHON_STACK * ranks;
  // FSDP's cpu_ram_efficient_loading and zero.Init load the checkpoint once a node; quantised loading goes straight to the device.
  const copies = strategy === 'zero3' || strategy.startsWith('fsdp') || strategy === 'hsdp' ? 1 : ranks;
  const loading = values.quantization ? Math.min(input.modelBytes, 5e9) * ranks : input.modelBytes * copies;
  const workers = values.dataloaderNumWorkers * WORKER * ranks;
  const batch = values.perDeviceTrainBatchSize * values.maxLength * TOKEN_BYTES;
  const pinned = values.dataloaderPinMemory ? batch * Math.max(2, 2 * values.dataloaderNumWorkers) * ranks : 0;
  const offloaded = (input.offloadedBytes + input.offloadedActivationBytes) * ranks;
  // save_pretrained collects one shard at a time: 5 GB before transformers 5, 50 GB since.
  const shard = isBefore(values.versions.transformers, '5') ? 5e9 : 50e9;
  const saving = Math.min(input.savedBytes, shard);
  const training = { dataloaderWorkers: workers, pinnedBuffers: pinned, offloadedStates: offloaded };
  const stages: readonly Record<string, number>[] = [
    { pythonStack, loading, offloadedStates: offloaded },
    { pythonStack, ...training, saving },
  ];
  const sized = stages.map((terms) => {
    const whole = Object.fromEntries(Object.entries(terms).map(([name, bytes]) => [name, Math.round(bytes)]));
    return { terms: whole, peakBytes: Object.values(whole).reduce((total, bytes) => total + bytes, 0) };
  });
  return sized.reduce((most, stage) => (stage.peakBytes > most.peakBytes ? stage : most));
}
