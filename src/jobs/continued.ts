import type { Ports } from '../core/index.ts';
import type { RunEvent } from '../report/index.ts';
import { type CheckpointWriter, savedByRun } from './checkpoint-of-run.ts';
import type { ContinueAttempt } from './continue-record.ts';
import type { EarlierRun } from './earlier-run.ts';
import { goOn, moved, type PlannedAttempt, startingValues } from './next-attempt.ts';
import type { Preflight } from './preflight.ts';

/** The attempts of a broken-off run as writers of checkpoints. */
export function earlierWriters({ record }: EarlierRun, preflight: Preflight): readonly CheckpointWriter[] {
  const values = startingValues(preflight);
  return record.attempts.map(({ startedMs, outputDir, changes }) => ({
    startedMs,
    outputDir,
    values: moved(values, changes),
  }));
}

/**
 * The attempt that goes on with a broken-off run: the settings of its last one, from its last complete checkpoint. undefined: it
 * had not come to an attempt yet.
 */
export function continueAttempt(
  ports: Ports,
  preflight: Preflight,
  earlier: EarlierRun,
): { readonly planned: PlannedAttempt; readonly events: readonly RunEvent[] } | undefined {
  const last: ContinueAttempt | undefined = earlier.record.attempts.at(-1);
  if (!last) return undefined;
  const { reading } = preflight;
  const values = moved(startingValues(preflight), last.changes);
  const estimate = preflight.values && values ? preflight.estimate?.(values) : undefined;
  const planned: PlannedAttempt = {
    changes: last.changes,
    values,
    estimate: estimate?.ok ? estimate.value : undefined,
  };
  // Another folder was written into under settings that may not fit the last ones.
  const writers = earlierWriters(earlier, preflight).filter(({ outputDir }) => outputDir === last.outputDir);
  const saved = savedByRun(ports, writers);
  const begins: RunEvent = { kind: 'continuing', runFolder: earlier.path, attempts: earlier.record.attempts.length };
  const further = goOn(ports, reading, saved, true);
  return { planned: { ...planned, ...further.planned }, events: [begins, ...further.events] };
}
