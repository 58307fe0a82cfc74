import type { Ports } from '../core/index.ts';
import type { RunEvent } from '../report/index.ts';
import { type SavedByRun, savedByRun } from './checkpoint-of-run.ts';
import { type DecideRequest, type Decision, end } from './decision.ts';
import { afterGrowth } from './growth-retry.ts';
import { hostRamEnded } from './host-ram-levers.ts';
import { hostRamRetry } from './host-ram-retry.ts';
import { goOn, nextAttempt, startingValues, startOver } from './next-attempt.ts';
import type { Ending } from './run-record.ts';

const NOT_STARTED = { 'not-found': 'not-found', 'not-executable': 'not-executable', other: 'not-started' } as const;

/** Ends or goes on after an attempt. Where VRAM ran out it goes on only after `isFree`: the card has its memory back. */
export async function decideNext(
  ports: Ports,
  request: DecideRequest,
  isFree: () => Promise<boolean>,
): Promise<Decision> {
  const last = request.made.at(-1)!;
  const { evidence, failure } = last;
  const { exitCode, signal, startFailure, forwardedSignal, stoppedBecause } = evidence;
  const own: Ending = { whose: 'trainer', exitCode, signal };
  if (startFailure) return end({ whose: 'snug', reason: NOT_STARTED[startFailure] });
  if (forwardedSignal || request.signalled) return end(own);
  if (stoppedBecause === 'stall') return end(own);
  if (!failure) return madeNothing(request) ? startAnew(ports, request) : end(own);
  if (failure.resource === 'host_ram' || failure.resource === 'shm') return afterHostRam(ports, request);
  if (failure.resource !== 'vram') return end(own);
  if (!(await isFree())) return end({ whose: 'snug', reason: 'out-of-vram' });
  const saved = savedByRun(ports, [...request.before, ...request.made]);
  if (evidence.finished && failure.phase === 'save') return onlySavingFailed(saved);
  if (failure.kind === 'vram_leak_growth') return afterGrowth(ports, request, saved);
  const next = await nextAttempt(ports, { ...request, saved });
  return next.kind === 'give-up'
    ? end({ whose: 'snug', reason: 'out-of-vram' }, ...next.events)
    : { kind: 'retry', planned: next.planned, events: next.events };
}

/** Another start with fewer workers, no pinning, no offload, where that is known to help; else the reasons for the end. */
function afterHostRam(ports: Ports, request: DecideRequest): Decision {
  const { preflight, made, before, maxRetries } = request;
  const last = made.at(-1)!;
  const { evidence, failure, values } = last;
  const original = startingValues(preflight);
  const planned = original && made.length <= maxRetries ? hostRamRetry({ preflight, original, last }) : undefined;
  if (!planned) {
    if (failure!.resource === 'shm')
      return end({ whose: 'trainer', exitCode: evidence.exitCode, signal: evidence.signal });
    // Settings filled in for an unknown length can be made smaller, but not be estimated.
    const estimate = preflight.values ? preflight.estimate : undefined;
    const { host } = preflight.hardware;
    return end(
      { whose: 'snug', reason: 'out-of-host-ram' },
      hostRamEnded({ failure: failure!, evidence, values, estimate, host }),
    );
  }
  const replanned: RunEvent = {
    kind: 'replanned',
    because: failure!.resource === 'shm' ? 'shared memory (/dev/shm) ran out' : 'host RAM ran out',
    changes: planned.changes,
    predicted: planned.estimate,
    calibratedBytes: undefined,
    distributed: planned.values?.distributed,
  };
  const saved = savedByRun(ports, [...before, ...made]);
  const further = goOn(ports, preflight.reading, saved, true);
  return { kind: 'retry', planned: { ...planned, ...further.planned }, events: [replanned, ...further.events] };
}

/**
 * A resumed attempt that ended well at once has trained nothing: its trainer took the run for finished, or a search of its own broke
 * off. What was left to do is told by the checkpoint; whether steps can be seen at all, by the attempts before.
 */
function madeNothing({ made }: DecideRequest): boolean {
  const { planned, evidence } = made.at(-1)!;
  const { resumeFrom } = planned;
  if (!resumeFrom || evidence.exitCode !== 0 || evidence.stepsSeen !== 0) return false;
  const wasDone = resumeFrom.maxSteps !== undefined && resumeFrom.step >= resumeFrom.maxSteps;
  return !wasDone && made.some((one) => (one.evidence.stepsSeen ?? 0) > 0);
}

function startAnew(ports: Ports, request: DecideRequest): Decision {
  const { preflight, made, before, maxRetries } = request;
  const ended: RunEvent = { kind: 'made-no-step', checkpoint: made.at(-1)!.planned.resumeFrom!.path };
  if (made.length > maxRetries) return end({ whose: 'snug', reason: 'no-new-step' }, ended);
  const saved = savedByRun(ports, [...before, ...made]);
  const { outputDir } = startOver(ports, preflight.reading, saved, true);
  // Without a folder of its own it would find the same checkpoint again.
  if (outputDir === undefined) return end({ whose: 'snug', reason: 'no-new-step' }, ended);
  const { resumeFrom: _, ...planned } = made.at(-1)!.planned;
  return {
    kind: 'retry',
    planned: { ...planned, freshOutputDir: outputDir },
    events: [ended, { kind: 'starting-over', outputDir, reason: 'the resumed attempt made no step' }],
  };
}

/** To train once more would lose days to change nothing about the save. */
function onlySavingFailed({ checkpoint }: SavedByRun): Decision {
  const kept =
    checkpoint && `${checkpoint.path} (step ${checkpoint.step}) is complete: export or merge from it on the CPU`;
  return end(
    { whose: 'snug', reason: 'out-of-vram' },
    {
      kind: 'given-up',
      reason: 'training was done and only saving ran out of GPU memory, so it is not trained again',
      wouldHelp: [kept ?? 'look into the output folder for what was saved, before it is written to again'],
    },
  );
}
