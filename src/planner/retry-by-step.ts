import { applyPicks, type Combination, harmOf } from './combination.ts';
import { LEVERS, type Lever } from './levers/index.ts';
import {
  fragmentationSeen,
  keepsCheckpoint,
  movesPhase,
  planOf,
  predictsPhase,
  type RetryContext,
} from './retry-context.ts';

/** Options of a lever where the other picks stand as they are. */
function optionsAt(position: number, picks: readonly number[], { request, optionsOf }: RetryContext) {
  const others = applyPicks(request.values, picks.with(position, 0), optionsOf);
  return optionsOf(LEVERS[position]!, others.values);
}

/** A batch is halved at least; every other lever goes on by one option. */
function nextOption(
  lever: Lever,
  position: number,
  picks: readonly number[],
  context: RetryContext,
): number | undefined {
  const options = optionsAt(position, picks, context);
  const current = picks[position]!;
  if (lever.id !== 'micro-batch' && lever.id !== 'eval-batch')
    return current < options.length ? current + 1 : undefined;
  const setting = lever.id === 'micro-batch' ? 'perDeviceTrainBatchSize' : 'perDeviceEvalBatchSize';
  const now = current === 0 ? context.request.values[setting] : options[current - 1]?.set[setting];
  const index = options.findIndex(({ set }) => (set[setting] ?? Number.POSITIVE_INFINITY) <= (now ?? 1) / 2);
  return index === -1 ? undefined : index + 1;
}

const position = (id: string): number => LEVERS.findIndex((lever) => lever.id === id);

/**
 * The next smaller attempt without trusting a prediction: for an unknown model, or a phase whose peak was not the predicted one. It
 * halves the batch of the phase (with checkpointing, where it can be written); once there is nothing to halve, the mildest lever
 * left goes one step further. Levers that keep the checkpoint come first.
 */
export function smallerByStep(context: RetryContext): Combination | undefined {
  const { request, failed, permitted, estimateOf, triedAlready } = context;
  const { picks } = failed;
  // Other segments are worth an attempt of their own only on evidence.
  const worthwhile = ({ id }: Lever): boolean => id !== 'allocator' || fragmentationSeen(request.failure) === true;
  const usable = (lever: Lever): boolean => permitted(lever) && movesPhase(lever, context) && worthwhile(lever);
  const pulled = (id: string): number | undefined => {
    const at = position(id);
    return usable(LEVERS[at]!) ? nextOption(LEVERS[at]!, at, picks, context) : undefined;
  };
  const moved = (changes: Readonly<Record<string, number | undefined>>): readonly number[] =>
    Object.entries(changes).reduce((all, [id, option]) => (option ? all.with(position(id), option) : all), picks);

  const single = LEVERS.filter(usable)
    .sort((a, b) => harmOf(a.class) - harmOf(b.class))
    .map(({ id }) => moved({ [id]: pulled(id) }));
  const batch = { 'micro-batch': pulled('micro-batch'), 'gradient-checkpointing': pulled('gradient-checkpointing') };
  const candidates = [moved(batch), moved({ 'eval-batch': pulled('eval-batch') }), ...single]
    .filter((candidate) => candidate !== picks)
    .map((candidate) => planOf(candidate, context))
    .filter(({ values }) => !triedAlready(values))
    .filter(({ values }) => {
      const now = estimateOf(values);
      if (!failed.estimate || !now) return true;
      const less = now.vram.allocatedPeakBytes - failed.estimate.vram.allocatedPeakBytes;
      // Of a phase that is not the predicted peak, the prediction cannot show that it shrinks.
      return predictsPhase(context) ? less < 0 : less <= 0;
    });
  return candidates.find((candidate) => keepsCheckpoint(candidate.picks, context)) ?? candidates[0];
}
