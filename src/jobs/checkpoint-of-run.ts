import { isAbsolute, join } from 'node:path';
import type { Ports } from '../core/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { newestCompleteCheckpoint } from '../supervisor/index.ts';

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
}

/** Clocks of network volumes lag; a checkpoint this much older than the attempt may still be its own. */
const CLOCK_SKEW_MS = 2_000;

/**
 * The newest complete checkpoint that this run wrote itself. What lay in the output folder before is somebody's earlier
 * work: going on from it is the user's decision, not ours.
 */
export function checkpointOfRun(ports: Ports, attempts: readonly CheckpointWriter[]): RunCheckpoint | undefined {
  for (const attempt of attempts.toReversed()) {
    if (attempt.outputDir === undefined) continue;
    const folder = isAbsolute(attempt.outputDir) ? attempt.outputDir : join(ports.cwd, attempt.outputDir);
    const found = newestCompleteCheckpoint(folder, ports.files);
    if (!found) continue;
    const written = ports.files.info(join(found.path, 'trainer_state.json')) ?? ports.files.info(found.path);
    const writer = attempts.findLast(
      (each) =>
        each.outputDir === attempt.outputDir &&
        written !== undefined &&
        written.modifiedMs >= each.startedMs - CLOCK_SKEW_MS,
    );
    if (writer) return { path: found.path, step: found.step, values: writer.values };
  }
  return undefined;
}
