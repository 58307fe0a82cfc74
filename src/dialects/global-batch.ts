import type { Origin, Setting } from '../spec/index.ts';
import type { Position, Written } from './dialect.ts';
import { cannot } from './hf-argparser/written.ts';

/**
 * A trainer that is told the rows of a whole step: accumulation follows from them, from the rows of one pass and from the
 * processes that share the data.
 */
export interface GlobalBatch {
  /** Rows of one optimizer step over all processes. */
  readonly rows: number;
  /** Processes that get different rows. */
  readonly replicas: number;
}

/** Processes of the whole launch as the layers above say; undefined: unknown. */
export function worldSize({ above }: Position): number | undefined {
  const processes = above.findLast((layer) => layer.reading.processes)?.reading.processes;
  if (!processes) return 1;
  return processes.nodes === null || processes.perNode === null ? undefined : processes.nodes * processes.perNode;
}

/** `rows ÷ (replicas × micro)`, rounded as the trainer does; null where one of them is unknown or nothing is left. */
export function accumulationOf(
  batch: GlobalBatch | undefined,
  micro: number | null,
  round: (quotient: number) => number,
  origin: Origin,
): Setting<number> {
  const steps = batch && micro ? round(batch.rows / (batch.replicas * micro)) : 0;
  return { value: steps > 0 ? steps : null, origin };
}

/** Sets the rows of one pass; accumulation follows, and the whole step must divide evenly. */
export function writeMicroBatch(batch: GlobalBatch | undefined, to: number, set: (micro: number) => Written): Written {
  if (batch && batch.rows % (batch.replicas * to) !== 0) {
    return cannot(`a step of ${batch.rows} rows on ${batch.replicas} GPUs cannot be split into passes of ${to}`);
  }
  return set(to);
}

/** Accumulation is what is left of the whole step: told by the rows of one pass, so that both changes write the same place. */
export function writeAccumulation(
  batch: GlobalBatch | undefined,
  to: number,
  set: (micro: number) => Written,
): Written {
  if (!batch) return cannot('accumulation follows from the number of processes, which is not known');
  const micro = batch.rows / (batch.replicas * to);
  if (!Number.isInteger(micro)) {
    return cannot(`a step of ${batch.rows} rows on ${batch.replicas} GPUs cannot be split into ${to} passes`);
  }
  return set(micro);
}
