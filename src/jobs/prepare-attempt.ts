import { join } from 'node:path';
import { fail, ok, type Ports, type Result } from '../core/index.ts';
import { type FittedLaunch, writeLaunch } from '../dialects/index.ts';
import type { RunEvent } from '../report/index.ts';
import type { SpecChange } from '../spec/index.ts';
import type { AttemptLaunch } from './attempt-files.ts';
import { batchToSay, checkpointBatchWins, copyWithBatch } from './checkpoint-copy.ts';
import type { PlannedAttempt } from './next-attempt.ts';
import type { Preflight } from './preflight.ts';
import type { RunFolder } from './run-folder.ts';
import { startable } from './startable.ts';
import { trainerPython } from './trainer-python.ts';

/** An attempt that can be started. */
export interface PreparedAttempt {
  /** `attempts/<n>/`. */
  readonly path: string;
  readonly launch: AttemptLaunch;
  readonly fitted: FittedLaunch;
  readonly outputDir: string | undefined;
  readonly events: readonly RunEvent[];
}

export interface PrepareRequest {
  readonly preflight: Preflight;
  readonly planned: PlannedAttempt;
  readonly number: number;
  /** Whether snug itself will try smaller batches. */
  readonly retries: boolean;
}

/** Opens the attempt's folder and writes the plan into the launch. */
export async function prepareAttempt(
  ports: Ports,
  folder: RunFolder,
  { preflight, planned, number, retries }: PrepareRequest,
): Promise<Result<PreparedAttempt>> {
  const opened = folder.openAttempt(number);
  if (!opened.ok) return opened;
  const path = opened.value;
  const { reading } = preflight;
  const events: RunEvent[] = [];
  const sameBatch = retries ? searchOff(preflight, planned) : [];
  if (sameBatch.length > 0) events.push({ kind: 'batch-search-off' });
  const resumeFrom = await checkpointFor(ports, preflight, planned, path, events);
  if (!resumeFrom.ok) return resumeFrom;
  const fitted = writeLaunch(reading, {
    changes: [...planned.changes, ...sameBatch],
    copyFolder: path,
    ...(resumeFrom.value === undefined ? {} : { resumeFrom: resumeFrom.value }),
    ...(planned.freshOutputDir === undefined ? {} : { outputDir: planned.freshOutputDir }),
  });
  if (!fitted.ok) return fail(...fitted.error);
  const launch = startable(fitted.value.argv);
  return ok({
    path,
    launch: { argv: launch.argv, env: { ...launch.env, ...fitted.value.env }, cwd: ports.cwd },
    fitted: fitted.value,
    outputDir: planned.freshOutputDir ?? reading.spec.outputDir?.value ?? undefined,
    events,
  });
}

/**
 * The batch as it stands, written once more: a trainer that is told its batch has its own search turned off. Two searchers must not
 * nest, and the trainer's leaves the accumulation as it is.
 */
function searchOff({ reading }: Preflight, planned: PlannedAttempt): readonly SpecChange[] {
  const searches = reading.diagnostics.some(({ code }) => code === 'auto-find-batch-size');
  const setting = 'perDeviceTrainBatchSize';
  const batch = reading.spec[setting]?.value;
  if (!searches || !batch || planned.changes.some((change) => change.setting === setting)) return [];
  if (reading.writable(setting, batch) !== true) return [];
  return [{ setting, from: batch, to: batch, lever: 'batch-search', class: 'exact', savesBytes: 0, cost: 'none' }];
}

/** The folder to resume from: the checkpoint, or a stand-in where it would impose its own batch. */
async function checkpointFor(
  ports: Ports,
  { reading }: Preflight,
  { resumeFrom, values }: PlannedAttempt,
  path: string,
  events: RunEvent[],
): Promise<Result<string | undefined>> {
  if (!resumeFrom) return ok(undefined);
  const batch = batchToSay(resumeFrom, values);
  if (batch === undefined || !(await checkpointBatchWins(ports, trainerPython(ports, reading)))) {
    return ok(resumeFrom.path);
  }
  const copy = copyWithBatch(ports, resumeFrom, batch, join(path, 'resume'));
  if (!copy.ok) return copy;
  events.push({ kind: 'checkpoint-batch', checkpoint: resumeFrom.path, carries: resumeFrom.trainBatchSize!, batch });
  return copy;
}
