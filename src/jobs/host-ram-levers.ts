import type { Result } from '../core/index.ts';
import type { Evidence, Failure } from '../diagnosis/index.ts';
import type { HostMemory } from '../hardware/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import type { HostRamLever, RunEvent } from '../report/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { HOST_RAM_MOVES } from './host-ram-moves.ts';

export interface HostRamQuestion {
  readonly failure: Failure;
  readonly evidence: Evidence;
  /** The settings that ran; undefined: not known. */
  readonly values: PlanValues | undefined;
  readonly estimate: ((values: PlanValues) => Result<MemoryEstimate>) | undefined;
  /** As it was before the run. */
  readonly host: HostMemory | undefined;
}

/** Less than this is not worth a change. */
const WORTH_BYTES = 64 * 2 ** 20;

/** What to do after a run ended for want of host RAM: how much was seen, how much there was, and what would move it. */
export function hostRamEnded(question: HostRamQuestion): Extract<RunEvent, { kind: 'host-ram-out' }> {
  const { failure, evidence, host } = question;
  return {
    kind: 'host-ram-out',
    phase: failure.phase,
    seenBytes: evidence.peakRamBytes,
    limitBytes: evidence.cgroupLimitBytes ?? evidence.hostRamBytes,
    availableBytes: host?.availableBytes,
    limitedBy: host?.limitedBy,
    levers: leversOf(question),
  };
}

function leversOf({ values, estimate }: HostRamQuestion): HostRamLever[] {
  if (!values) return [];
  const neededBy = (at: PlanValues): number | undefined => {
    const answer = estimate?.(at);
    return answer?.ok ? answer.value.ram.neededBytes : undefined;
  };
  const before = neededBy(values);
  const levers = HOST_RAM_MOVES.flatMap(({ lever, turnDown }): HostRamLever[] => {
    const moved = turnDown(values);
    if (!moved) return [];
    const after = neededBy({ ...values, ...moved });
    const savesBytes = before === undefined || after === undefined ? undefined : Math.max(0, before - after);
    if (savesBytes !== undefined && savesBytes < WORTH_BYTES) return [];
    return [{ lever, workers: values.dataloaderNumWorkers, ranks: values.distributed.processesPerNode, savesBytes }];
  });
  return levers.sort((left, right) => (right.savesBytes ?? 0) - (left.savesBytes ?? 0));
}
