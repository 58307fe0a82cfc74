import { isDeepStrictEqual } from 'node:util';
import type { LaunchReading } from '../dialects/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import type { PlanValues, SettingName, SpecChange } from '../spec/index.ts';
import { HOST_RAM_MOVES, type HostRamMove } from './host-ram-moves.ts';
import type { PlannedAttempt } from './next-attempt.ts';
import type { Preflight } from './preflight.ts';
import type { MadeAttempt } from './run-attempts.ts';

/** Levers of retries: changing the number of ranks would change the run itself. */
const PULLED = HOST_RAM_MOVES.filter(({ lever }) => lever !== 'ranks');
const IDS = new Set<string>(PULLED.map(({ lever }) => lever));
/** What a failure without a figure of its own is taken to have needed beyond the prediction. */
const MARGIN = 1.1;

/** Changes of an attempt that came from running out of host memory; later ones keep them. */
export const hostRamChanges = (changes: readonly SpecChange[]): readonly SpecChange[] =>
  changes.filter(({ lever }) => IDS.has(lever));

export interface HostRamRetryRequest {
  readonly preflight: Preflight;
  /** Settings of the launch as it came. */
  readonly original: PlanValues;
  readonly last: MadeAttempt;
}

/** The settings that differ, as changes from the launch as it came; undefined: one of them cannot be written. */
function changesOf(
  move: HostRamMove,
  original: PlanValues,
  set: Partial<PlanValues>,
  reading: LaunchReading,
): readonly SpecChange[] | undefined {
  const changed = Object.entries(set).filter(
    ([name, to]) => !isDeepStrictEqual(original[name as keyof PlanValues], to),
  );
  if (changed.some(([name, to]) => reading.writable(name as SettingName, to) !== true)) return undefined;
  return changed.map(
    ([name, to]) =>
      ({
        setting: name as SettingName,
        from: original[name as keyof PlanValues] ?? null,
        to,
        lever: move.lever,
        class: 'exact',
        savesBytes: 0,
        cost: move.cost,
      }) as SpecChange,
  );
}

/** Host memory of a node by the estimator, bytes; undefined: it has no answer. */
const ramOf = (estimate: MemoryEstimate | undefined): number | undefined => estimate?.ram.neededBytes;

/**
 * The next attempt after host RAM, /dev/shm or a DataLoader worker gave out: levers that move those are pulled one after the other,
 * each predicted to need less, until the prediction, scaled by what was seen, has room; offload is only given up where the GPU has room
 * for what comes back. undefined: nothing that snug may change makes it smaller.
 */
export function hostRamRetry({ preflight, original, last }: HostRamRetryRequest): PlannedAttempt | undefined {
  const { planned, failure, evidence, values } = last;
  if (!failure || !values) return undefined;
  const { reading, budget } = preflight;
  const estimator = preflight.values ? preflight.estimate : undefined;
  const estimateOf = (at: PlanValues): MemoryEstimate | undefined => {
    const answer = estimator?.(at);
    return answer?.ok ? answer.value : undefined;
  };
  const shmOnly = failure.resource === 'shm';
  const before = ramOf(planned.estimate ?? estimateOf(values));
  const available = preflight.hardware.host?.availableBytes;
  const seen = Math.max(evidence.peakRamBytes, available ?? 0);
  const factor = before === undefined ? undefined : Math.max(MARGIN, seen / before);
  const usable = budget && budget.capacityBytes - budget.usedByOthersBytes - budget.headroomBytes;

  let at = values;
  let changes = planned.changes;
  let need = before;
  let pulled = false;
  for (const move of PULLED) {
    if (shmOnly && !move.movesShm) continue;
    const set = move.turnDown(at);
    const now = set && { ...at, ...set };
    const written = set && changesOf(move, original, set, reading);
    if (!now || !written || written.length === 0) continue;
    const estimate = estimateOf(now);
    const less = ramOf(estimate);
    // Workers hold copies of Python objects that no estimate of tensors counts.
    const smaller = move.lever === 'workers' || (less !== undefined && need !== undefined && less < need);
    const fits = move.lever !== 'offload' || !estimate || !usable || estimate.vram.devicePeakBytes <= usable;
    if (!smaller || !fits) continue;
    at = now;
    changes = [...changes.filter(({ setting }) => !written.some((one) => one.setting === setting)), ...written];
    need = less ?? need;
    pulled = true;
    if (
      shmOnly ||
      (need !== undefined && factor !== undefined && available !== undefined && need * factor <= available)
    ) {
      break;
    }
  }
  if (!pulled) return undefined;
  const estimate = estimateOf(at);
  return { changes, values: at, estimate };
}
