import { formatBytes } from '../core/index.ts';
import { calibratedNeed } from './calibrate.ts';
import type { Combination } from './combination.ts';
import { availableOptions } from './levers/availability.ts';
import { LEVERS } from './levers/index.ts';
import type { NextStep, ReplanRequest } from './next-step.ts';
import { furtherClasses, permits } from './permits.ts';
import { smallerByEstimate } from './retry-by-estimate.ts';
import { smallerByStep } from './retry-by-step.ts';
import {
  movesPhase,
  planOf,
  predictsPhase,
  type RetryContext,
  retryContext,
  retryWith,
  setAside,
} from './retry-context.ts';

const giveUp = (reason: string, ...wouldHelp: readonly string[]): NextStep => ({ kind: 'give-up', reason, wouldHelp });

/** More retries help only where there is something smaller to try. */
function outOfRetries(request: ReplanRequest): NextStep {
  const { attempts, policy } = request;
  const { maxRetries } = policy;
  const used =
    maxRetries === 0
      ? 'no retry is allowed'
      : `${maxRetries === 1 ? 'the one retry is' : `all ${maxRetries} retries are`} used up`;
  const further = replan({ ...request, policy: { ...policy, maxRetries: attempts.length } });
  return further.kind === 'retry'
    ? giveUp(used, `--retries ${maxRetries + 2} tries smaller settings`)
    : giveUp(`${used}, and ${further.reason}`, ...further.wouldHelp);
}

/** Others that take less of a card than this are planned around. */
const SMALL_SHARE = 0.25;

/** Somebody took much of the card since the run was planned: to shrink around them would only hide it. */
function heldByOthers({ failure, budget }: ReplanRequest): NextStep | undefined {
  if (failure.kind !== 'vram_other_process') return undefined;
  const { othersBytes = 0, totalBytes } = failure.numbers;
  const capacity = budget?.capacityBytes ?? totalBytes;
  const newly = othersBytes - (budget?.usedByOthersBytes ?? 0);
  if (capacity === undefined || newly < SMALL_SHARE * capacity) return undefined;
  const holders = (failure.holders ?? []).map(({ pid, bytes }) => `process ${pid} with ${formatBytes(bytes)}`);
  const who = holders.length > 0 ? ` (${holders.join(', ')})` : '';
  return giveUp(
    `other programs hold ${formatBytes(othersBytes)} of the card${who}, and smaller settings would only hide that`,
    'free the card (nvidia-smi lists who is on it), then start again, or choose another one with CUDA_VISIBLE_DEVICES',
  );
}

/** Failures that no smaller setting answers; undefined: one may. */
function hopeless(request: ReplanRequest): NextStep | undefined {
  const { failure, attempts, policy, checkpoint } = request;
  if (failure.resource === 'host_ram') {
    return giveUp(
      'host RAM ran out, which smaller batches on the GPU do not change',
      'more host RAM, or fewer DataLoader workers',
    );
  }
  if (failure.resource !== 'vram') return giveUp('the run did not end for want of GPU memory');
  const crowded = heldByOthers(request);
  if (crowded) return crowded;
  if (attempts.length > policy.maxRetries) return outOfRetries(request);
  if (failure.kind === 'vram_leak_growth' && !checkpoint) {
    return giveUp(
      'memory grew step after step: something in the training code keeps tensors, and smaller settings only put the end off',
      'find what is kept: torch.cuda.memory._record_memory_history() before training, _dump_snapshot() after some steps',
    );
  }
  return undefined;
}

const allocatorAt = LEVERS.findIndex(({ id }) => id === 'allocator');

/** The failed attempt again, in segments that can be used for blocks of any size. */
function withAllocator(context: RetryContext): Combination | undefined {
  const { failed, permitted, triedAlready } = context;
  if (!permitted(LEVERS[allocatorAt]!) || failed.picks[allocatorAt] !== 0) return undefined;
  const plan = planOf(failed.picks.with(allocatorAt, 1), context);
  return plan.picks[allocatorAt] === 1 && !triedAlready(plan.values) ? plan : undefined;
}

const phaseText = ({ failure }: ReplanRequest): string =>
  failure.phase === 'unknown' ? 'the run' : `the ${failure.phase} phase`;

function becauseOf(context: RetryContext): string {
  const { factor, request } = context;
  if (setAside(context))
    return `${phaseText(request)} needed several times what was predicted, so the prediction is set aside`;
  return factor && factor > 1.005
    ? `${phaseText(request)} needed at least ${factor.toFixed(2)} × what was predicted`
    : `${phaseText(request)} ran out of memory`;
}

/** What stronger means would bring, the mildest first. */
function wouldHelp(context: RetryContext): readonly string[] {
  const { request, failed, factor } = context;
  const { policy, values, surroundings, budget } = request;
  const classes = furtherClasses(policy).flatMap((leverClass) => {
    const levers = LEVERS.filter((lever) => lever.class === leverClass && movesPhase(lever, context)).filter(
      (lever) => {
        const options = availableOptions(lever, values, surroundings);
        return typeof options !== 'string' && options.length > 0;
      },
    );
    if (levers.length === 0) return [];
    const allow = [...policy.allow, leverClass];
    const smaller = smallerByEstimate(context, (lever) => permits({ ...policy, allow }, lever), false);
    const needs = smaller && context.estimateOf(smaller.plan.values);
    if (failed.estimate && !needs) return [];
    const size = needs ? `, predicted ${formatBytes(calibratedNeed(needs, factor ?? 1))}` : '';
    return [`--allow ${allow.join(',')}: ${levers.map(({ title }) => title).join(', ')}${size}`];
  });
  const need = failed.estimate && factor ? calibratedNeed(failed.estimate, factor) : undefined;
  const share = budget ? budget.headroomBytes / budget.capacityBytes : policy.headroom;
  const card = need
    ? `a GPU with ${formatBytes(Math.ceil(need / (1 - share)))} free for the last settings`
    : 'a larger GPU';
  return [...classes, card];
}

function exhausted(context: RetryContext): NextStep {
  const { request } = context;
  const { phase } = request.failure;
  const unmoved = phase === 'load' || phase === 'save' || phase === 'resume' || phase === 'optimizer';
  const reason = unmoved
    ? `memory ran out in the ${phase} phase, which no batch size moves, and no permitted change makes it smaller`
    : 'no permitted change makes the run smaller than what already failed';
  return giveUp(reason, ...wouldHelp(context));
}

/**
 * What to do after an attempt ended for want of VRAM. A retry is worked out from the original settings, keeps the global batch,
 * was not tried before, is predicted strictly smaller than the attempt that failed and fits by the failure's own numbers, or is the
 * smallest permitted where none does; where nothing can be predicted for the phase that failed, or the prediction was far off,
 * it pulls a lever of that phase further. Plans that keep the checkpoint come first.
 */
export function replan(request: ReplanRequest): NextStep {
  const end = hopeless(request);
  if (end) return end;
  const context = retryContext(request);
  if (request.failure.kind === 'vram_fragmentation') {
    const plan = withAllocator(context);
    if (plan) return retryWith(plan, 'free memory lay in pieces too small to use', context);
  }
  const predicted = context.failed.estimate !== undefined && request.estimate !== undefined;
  if (!predicted || !predictsPhase(context) || setAside(context)) {
    const plan = smallerByStep(context);
    return plan ? retryWith(plan, becauseOf(context), context) : exhausted(context);
  }
  const plans = [...(request.checkpoint ? [true] : []), false].flatMap(
    (holding) => smallerByEstimate(context, context.permitted, holding) ?? [],
  );
  // What surely fits comes before what keeps the checkpoint but may fail again.
  const chosen = plans.find(({ sure }) => sure) ?? plans[0];
  if (!chosen) return exhausted(context);
  const why = chosen.sure ? becauseOf(context) : `${becauseOf(context)}, which no permitted change surely covers`;
  return retryWith(chosen.plan, why, context);
}
