import { join } from 'node:path';
import type { FilePort } from '../core/index.ts';
import { findStateFlaw } from './checkpoint-layouts.ts';

/** A checkpoint that can be gone on from. */
export interface Checkpoint {
  readonly path: string;
  readonly step: number;
  /** Of the run that wrote it; a trainer may take it over the flag it is given now. */
  readonly trainBatchSize?: number;
  readonly maxSteps?: number;
  /** Newer ones that are not whole, newest first. Left where they are: they are the user's. */
  readonly skipped: readonly SkippedCheckpoint[];
}

export interface SkippedCheckpoint {
  readonly path: string;
  /** Lowercase, without a full stop: `optimizer.pt was cut off (no zip end record)`. */
  readonly reason: string;
}

interface TrainerState {
  readonly global_step?: unknown;
  readonly train_batch_size?: unknown;
  readonly max_steps?: unknown;
}

const positive = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;

function readTrainerState(folder: string, files: FilePort): { state: TrainerState } | { flaw: string } {
  const path = join(folder, 'trainer_state.json');
  const info = files.info(path);
  if (!info) return { flaw: 'trainer_state.json is missing' };
  // Its history has a line for every logged step: no limit for configs applies here.
  const bytes = files.readBytes(path, 0, info.sizeBytes);
  if (!bytes.ok) return { flaw: `trainer_state.json cannot be read (${bytes.code})` };
  try {
    const state: unknown = JSON.parse(new TextDecoder().decode(bytes.value));
    if (typeof state === 'object' && state !== null) return { state };
  } catch {
    // Cut off in the middle: said below.
  }
  return { flaw: 'trainer_state.json is not whole' };
}

/**
 * The newest `checkpoint-<step>` of an output folder that a run can go on from: a process killed while saving leaves
 * half-written files, and trainers take the highest number without looking. Undefined when there is none. Checkpoints that are
 * not `wanted` (an earlier run's) are passed over in silence.
 */
export function newestCompleteCheckpoint(
  outputDir: string,
  files: FilePort,
  wanted: (path: string) => boolean = () => true,
): Checkpoint | undefined {
  const skipped: SkippedCheckpoint[] = [];
  const folders = files
    .list(outputDir)
    .flatMap((name) => {
      const step = /^checkpoint-(\d+)$/.exec(name)?.[1];
      const path = join(outputDir, name);
      return step !== undefined && files.info(path)?.kind === 'folder' && wanted(path)
        ? [{ path, step: Number(step) }]
        : [];
    })
    .sort((left, right) => right.step - left.step);
  for (const { path, step } of folders) {
    const read = readTrainerState(path, files);
    const reason = 'flaw' in read ? read.flaw : findStateFlaw(path, files);
    if ('state' in read && reason === undefined) {
      const trainBatchSize = positive(read.state.train_batch_size);
      const maxSteps = positive(read.state.max_steps);
      return {
        path,
        step: positive(read.state.global_step) ?? step,
        ...(trainBatchSize === undefined ? {} : { trainBatchSize }),
        ...(maxSteps === undefined ? {} : { maxSteps }),
        skipped,
      };
    }
    skipped.push({ path, reason: reason! });
  }
  return undefined;
}
