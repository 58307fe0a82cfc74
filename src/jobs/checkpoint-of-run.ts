import { isAbsolute, join } from 'node:path';
import type { Ports } from '../core/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { newestCompleteCheckpoint, type SkippedCheckpoint } from '../supervisor/index.ts';

/** An attempt, as far as its checkpoints are concerned. */
export interface CheckpointWriter {
  readonly startedMs: number;
  /** undefined: not known. */
  readonly values: PlanValues | undefined;
  readonly outputDir: string | undefined;
}

export interface RunCheckpoint {
  readonly path: string;
  readonly step: number;
  /** Settings under which it was written; undefined: not known. */
  readonly values: PlanValues | undefined;
  /** Output folder of the attempt it lies in. */
  readonly outputDir: string;
  /** The micro batch it carries; some trainers take it over the flag they are given. undefined: it names none. */
  readonly trainBatchSize: number | undefined;
  readonly maxSteps: number | undefined;
  /** Newer ones that are not whole, newest first. */
  readonly skipped: readonly SkippedCheckpoint[];
}

/** Clocks of network volumes lag; a checkpoint this much older than the attempt may still be its own. */
const CLOCK_SKEW_MS = 2_000;

/** What a run has saved so far. */
export interface SavedByRun {
  /** The newest complete checkpoint. */
  readonly checkpoint: RunCheckpoint | undefined;
  /** Whether anything of its own stands in the output folder, complete or not. */
  readonly anything: boolean;
}

/**
 * The newest complete checkpoint that this run wrote itself. What lay in the output folder before is somebody's earlier
 * work: going on from it is the user's decision, not ours.
 */
export function savedByRun(ports: Ports, attempts: readonly CheckpointWriter[]): SavedByRun {
  let anything = false;
  for (const attempt of attempts.toReversed()) {
    if (attempt.outputDir === undefined) continue;
    const folder = isAbsolute(attempt.outputDir) ? attempt.outputDir : join(ports.cwd, attempt.outputDir);
    const writerOf = (path: string): CheckpointWriter | undefined => {
      const written = ports.files.info(join(path, 'trainer_state.json')) ?? ports.files.info(path);
      if (!written) return undefined;
      return attempts.findLast(
        (each) => each.outputDir === attempt.outputDir && written.modifiedMs >= each.startedMs - CLOCK_SKEW_MS,
      );
    };
    const found = newestCompleteCheckpoint(folder, ports.files, (path) => {
      const own = writerOf(path) !== undefined;
      anything ||= own;
      return own;
    });
    if (found) {
      const { path, step, trainBatchSize, maxSteps, skipped } = found;
      const { values } = writerOf(path)!;
      const { outputDir } = attempt;
      return { checkpoint: { path, step, values, outputDir, trainBatchSize, maxSteps, skipped }, anything };
    }
  }
  return { checkpoint: undefined, anything };
}
