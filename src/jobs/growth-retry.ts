import type { Ports } from '../core/index.ts';
import type { SavedByRun } from './checkpoint-of-run.ts';
import { type DecideRequest, type Decision, end } from './decision.ts';
import { goOn, nextAttempt } from './next-attempt.ts';

/**
 * Memory that grows with the steps is no matter of the batch: no setting makes it stop. What a fresh process gathers begins at nothing
 * again, so the run goes on as it was, for as long as each attempt comes further than the one before.
 */
export async function afterGrowth(ports: Ports, request: DecideRequest, saved: SavedByRun): Promise<Decision> {
  const { preflight, made, maxRetries } = request;
  const { planned } = made.at(-1)!;
  const { resumeFrom, ...same } = planned;
  const further = saved.checkpoint !== undefined && saved.checkpoint.step > (resumeFrom?.step ?? 0);
  if (further && preflight.reading.resume.kind === 'supported' && made.length <= maxRetries) {
    const next = goOn(ports, preflight.reading, saved, true);
    return {
      kind: 'retry',
      planned: { ...same, ...next.planned },
      events: [
        { kind: 'same-again', because: 'memory grew step after step, which no smaller batch stops' },
        ...next.events,
      ],
    };
  }
  // Without a checkpoint to go on from the planner says why not.
  const next = await nextAttempt(ports, { ...request, saved: { ...saved, checkpoint: undefined } });
  return next.kind === 'give-up'
    ? end({ whose: 'snug', reason: 'out-of-vram' }, ...next.events)
    : { kind: 'retry', planned: next.planned, events: next.events };
}
