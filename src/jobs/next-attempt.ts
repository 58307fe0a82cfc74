import type { Ports } from '../core/index.ts';
import type { LaunchReading } from '../dialects/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import { replan } from '../planner/index.ts';
import type { RunEvent } from '../report/index.ts';
import { type PlanValues, planValues, type SpecChange, type TrainingSpec } from '../spec/index.ts';
import type { RunCheckpoint, SavedByRun } from './checkpoint-of-run.ts';
import { freshOutputDir, type StartOver } from './fresh-output.ts';
import { hostRamChanges } from './host-ram-retry.ts';
import { planWithPackages } from './plan-with-packages.ts';
import type { Preflight } from './preflight.ts';
import type { MadeAttempt } from './run-attempts.ts';

/** What the next start looks like. */
export interface PlannedAttempt {
  readonly changes: readonly SpecChange[];
  readonly estimate: MemoryEstimate | undefined;
  /** undefined: not even the batch is known, so nothing can be made smaller. */
  readonly values: PlanValues | undefined;
  readonly resumeFrom?: RunCheckpoint;
  readonly freshOutputDir?: string;
}

export type NextAttempt =
  | { readonly kind: 'retry'; readonly planned: PlannedAttempt; readonly events: readonly RunEvent[] }
  | { readonly kind: 'give-up'; readonly events: readonly RunEvent[] };

export interface NextAttemptRequest {
  readonly preflight: Preflight;
  readonly made: readonly MadeAttempt[];
  readonly saved: SavedByRun;
  readonly maxRetries: number;
}

/**
 * The settings of the launch as it came. Where nothing can be estimated, the batch alone is enough to retry smaller; a length
 * that is not known then plays no part.
 */
export function startingValues({ values, report }: Pick<Preflight, 'values' | 'report'>): PlanValues | undefined {
  if (values) return values;
  const spec: TrainingSpec = report.spec;
  const { maxLength: _, method: __, ...sized } = spec;
  const anyLength = { value: 1, origin: { kind: 'derived', from: 'not known' } } as const;
  const filled = planValues({ ...sized, maxLength: spec.maxLength?.value ? spec.maxLength : anyLength }, undefined);
  return filled.ok ? filled.value : undefined;
}

/** Settings of the launch as it came, moved by changes. */
export const moved = (values: PlanValues | undefined, changes: readonly SpecChange[]): PlanValues | undefined =>
  values && { ...values, ...Object.fromEntries(changes.map(({ setting, to }) => [setting, to])) };

const giveUp = (reason: string, ...wouldHelp: string[]): NextAttempt => ({
  kind: 'give-up',
  events: [{ kind: 'given-up', reason, wouldHelp }],
});

/** After an attempt that ran out of VRAM: the next, smaller one, from its checkpoint where that is possible. */
export async function nextAttempt(ports: Ports, request: NextAttemptRequest): Promise<NextAttempt> {
  const { preflight, made, maxRetries } = request;
  const last = made.at(-1)!;
  // What running out of host RAM has changed stays changed.
  const hostChanges = hostRamChanges(last.planned.changes);
  const values = moved(startingValues(preflight), hostChanges);
  if (!values || !last.failure) {
    return giveUp(
      'the batch size of this launch is not known, so it cannot be made smaller',
      'describe the run in a snug.yaml with placeholders in its command:',
    );
  }
  const { reading } = preflight;
  const checkpoint = reading.resume.kind === 'supported' ? request.saved.checkpoint : undefined;
  const question = { reading, hardware: preflight.hardware, starts: true };
  const estimate = preflight.values ? preflight.estimate : undefined;
  const { plan: next } = await planWithPackages(
    ports,
    question,
    preflight.surroundings,
    (surroundings) =>
      replan({
        values,
        attempts: made.map(({ planned }) => ({ values: planned.values ?? values, estimate: planned.estimate })),
        failure: last.failure!,
        budget: preflight.budget,
        policy: { ...preflight.policy, maxRetries },
        surroundings,
        estimate,
        ...(preflight.stepSeconds ? { stepSeconds: preflight.stepSeconds } : {}),
        leastBytes: preflight.leastBytes,
        checkpoint: checkpoint?.values,
      }),
    (step) => (step.kind === 'retry' ? step.plan.changes : []),
  );
  if (next.kind === 'give-up')
    return { kind: 'give-up', events: [{ kind: 'given-up', reason: next.reason, wouldHelp: next.wouldHelp }] };
  const replanned: RunEvent = {
    kind: 'replanned',
    because: next.because,
    changes: [...hostChanges, ...next.plan.changes],
    predicted: next.plan.setAside ? undefined : next.plan.estimate,
    calibratedBytes: next.plan.calibratedBytes,
    distributed: next.plan.values.distributed,
  };
  const planned: PlannedAttempt = {
    changes: [...hostChanges, ...next.plan.changes],
    estimate: next.plan.estimate,
    values: next.plan.values,
  };
  const further = goOn(ports, reading, request.saved, next.keepsCheckpoint);
  return { kind: 'retry', planned: { ...planned, ...further.planned }, events: [replanned, ...further.events] };
}

/** Goes on from a checkpoint, in the output folder it lies in. */
function resume(
  reading: LaunchReading,
  checkpoint: RunCheckpoint,
): { readonly planned: Pick<PlannedAttempt, 'resumeFrom' | 'freshOutputDir'>; readonly events: readonly RunEvent[] } {
  const { path, step, outputDir, skipped } = checkpoint;
  const own = reading.spec.outputDir?.value ?? undefined;
  return {
    planned: { resumeFrom: checkpoint, ...(outputDir === own ? {} : { freshOutputDir: outputDir }) },
    events: [
      ...skipped.map((one): RunEvent => ({ kind: 'checkpoint-skipped', checkpoint: one.path, reason: one.reason })),
      { kind: 'resuming', checkpoint: path, step },
    ],
  };
}

/** From the last complete checkpoint where the launch can be told; else from the start, in a folder that is not there yet. */
export function goOn(
  ports: Ports,
  reading: LaunchReading,
  saved: SavedByRun,
  keepsCheckpoint: boolean,
): { readonly planned: Pick<PlannedAttempt, 'resumeFrom' | 'freshOutputDir'>; readonly events: readonly RunEvent[] } {
  if (saved.checkpoint && keepsCheckpoint && reading.resume.kind === 'supported') {
    return resume(reading, saved.checkpoint);
  }
  const { reason, outputDir } = startOver(ports, reading, saved, keepsCheckpoint);
  return {
    planned: outputDir === undefined ? {} : { freshOutputDir: outputDir },
    events: [{ kind: 'starting-over', outputDir, reason }],
  };
}

/** Why there is nothing to go on from, and where the run starts over. */
export function startOver(
  ports: Ports,
  reading: LaunchReading,
  saved: SavedByRun,
  keepsCheckpoint: boolean,
): StartOver {
  const reason =
    reading.resume.kind === 'unsupported'
      ? reading.resume.reason
      : keepsCheckpoint
        ? 'no complete checkpoint was written yet'
        : 'the new settings do not fit the checkpoint';
  return { reason, outputDir: saved.anything ? freshOutputDir(ports, reading) : undefined };
}
