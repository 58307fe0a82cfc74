import { isDeepStrictEqual } from 'node:util';
import type { Failure } from '../diagnosis/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { calibratedNeed, shortfallFactor, usableAfter } from './calibrate.ts';
import { specChanges } from './changes.ts';
import { applyPicks, type Combination, type OptionsOf, optionSource } from './combination.ts';
import { findPicks } from './find-picks.ts';
import { LEVERS, type Lever } from './levers/index.ts';
import type { NextStep, ReplanRequest } from './next-step.ts';
import { keeping, permits } from './permits.ts';
import { boundsOf, rememberEstimates } from './plan-run.ts';
import type { EstimateOf, SearchRequest } from './search.ts';

/** What every way of finding a smaller attempt needs to know. */
export interface RetryContext {
  readonly request: ReplanRequest;
  /** Options of every lever, permitted or not. */
  readonly optionsOf: OptionsOf;
  readonly permitted: (lever: Lever) => boolean;
  readonly estimateOf: EstimateOf;
  readonly bound: Pick<SearchRequest, 'leastBytesOf'>;
  readonly failed: { readonly picks: readonly number[]; readonly estimate: MemoryEstimate | undefined };
  /** Picks under which the checkpoint was written; those of the failed attempt where there is none. */
  readonly checkpointPicks: readonly number[];
  /** Real need of the tensors ÷ prediction, at least 1; undefined without a prediction. */
  readonly factor: number | undefined;
  /** What the next attempt may use, bytes; undefined: the card is not known. */
  readonly usableBytes: number | undefined;
  readonly triedAlready: (values: PlanValues) => boolean;
}

const UNMOVED: readonly number[] = LEVERS.map(() => 0);

export function retryContext(asked: ReplanRequest): RetryContext {
  const { values, attempts, failure, budget, policy } = asked;
  const surroundings = keeping(asked.surroundings, policy.keep);
  const request = { ...asked, surroundings };
  const last = attempts.at(-1);
  if (!last) throw new Error('replan was given no attempt');
  const optionsOf = optionSource(surroundings, () => true, request.stepSeconds);
  const estimateOf: EstimateOf = request.estimate ? rememberEstimates(request.estimate) : () => undefined;
  const estimate = last.estimate ?? estimateOf(last.values);
  const picks = findPicks(values, last.values, optionsOf) ?? UNMOVED;
  const checkpointPicks = request.checkpoint ? (findPicks(values, request.checkpoint, optionsOf) ?? UNMOVED) : picks;
  return {
    request,
    optionsOf,
    permitted: (lever) => permits(policy, lever),
    estimateOf,
    bound: boundsOf(request),
    failed: { picks, estimate },
    checkpointPicks,
    factor: estimate && shortfallFactor(estimate, failure, budget),
    usableBytes: usableAfter(failure, budget, policy.headroom),
    triedAlready: (candidate) => attempts.some((attempt) => isDeepStrictEqual(attempt.values, candidate)),
  };
}

/**
 * Whether free memory lay in pieces: as much as was asked for was reserved and not in use. undefined: the failure has no such
 * numbers. Where it did not, other segments bring nothing.
 */
export function fragmentationSeen({ kind, numbers }: Failure): boolean | undefined {
  if (kind === 'vram_fragmentation') return true;
  const { reservedUnallocatedBytes, triedBytes } = numbers;
  return reservedUnallocatedBytes === undefined || triedBytes === undefined
    ? undefined
    : reservedUnallocatedBytes >= triedBytes;
}

/** Whether a lever lowers the peak of the phase that failed; in an unknown phase all of them may. */
export function movesPhase(lever: Lever, { request: { failure } }: RetryContext): boolean {
  if (lever.id === 'allocator' && fragmentationSeen(failure) === false) return false;
  return failure.phase === 'unknown' || lever.moves.includes(failure.phase);
}

/** Whether the checkpoint goes on under these picks: no lever that breaks it stands elsewhere than when it was written. */
export const keepsCheckpoint = (picks: readonly number[], { checkpointPicks }: RetryContext): boolean =>
  LEVERS.every((lever, position) => lever.survivesCheckpoint || picks[position] === checkpointPicks[position]);

/** A prediction off by more than this was made for another run than the one that failed: it prices nothing any more. */
const SET_ASIDE = 2;

export const setAside = ({ factor }: RetryContext): boolean => factor !== undefined && factor > SET_ASIDE;

/** Whether the prediction speaks of the phase that failed: forward and backward are one climb. */
export function predictsPhase({ request, failed }: RetryContext): boolean {
  const { phase } = request.failure;
  const climb = (name: string): string => (name === 'backward' ? 'forward' : name);
  return phase === 'unknown' || climb(phase) === 'forward' || failed.estimate?.vram.peakPhase === phase;
}

/** The answer for a plan that was found, its changes told from the launch as it came. */
export function retryWith(plan: Combination, because: string, context: RetryContext): NextStep {
  const { request, estimateOf, factor } = context;
  const estimate = estimateOf(plan.values);
  return {
    kind: 'retry',
    plan: {
      values: plan.values,
      changes: specChanges(request.values, plan, estimate, (at) => estimateOf(at)?.vram.devicePeakBytes),
      estimate,
      setAside: setAside(context),
      calibratedBytes: estimate && factor && !setAside(context) ? calibratedNeed(estimate, factor) : undefined,
    },
    keepsCheckpoint: keepsCheckpoint(plan.picks, context),
    because,
  };
}

/** Picks on the original values, all levers counted. */
export const planOf = (picks: readonly number[], { request, optionsOf }: RetryContext): Combination =>
  applyPicks(request.values, picks, optionsOf);
