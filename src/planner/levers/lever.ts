import type { Phase } from '../../memory/index.ts';
import type { LeverClass, PlanValues } from '../../spec/index.ts';
import type { Surroundings } from '../plan.ts';

/** What a lever costs in time. */
export interface LeverCost {
  /** Predicted step time as a multiple of what it was; 1: no slower. */
  readonly factor: number;
  /** For people: `about 1.3 × the step time`, `none`. */
  readonly text: string;
}

/** Something outside the settings that must hold before a lever may be used. */
export type LeverNeed =
  /** `whenUnknown`: what is taken when the trainer's Python cannot be asked. */
  | {
      readonly kind: 'package';
      readonly name: keyof Surroundings['packages'];
      readonly whenUnknown: 'present' | 'missing';
    }
  | { readonly kind: 'platform'; readonly name: string }
  /** The optimizer must see whole parameters on the GPU: no ZeRO-3/FSDP shards, nothing offloaded. */
  | { readonly kind: 'whole-parameters'; readonly what: string };

/** New values a lever can set, mildest first; none: it has nothing to move here. A string says what stands in its way. */
export type LeverOptions = readonly Partial<PlanValues>[] | string;

/** One way of making a run smaller. A new lever is one file here and one line in the registry. */
export interface Lever {
  /** kebab-case, stable. */
  readonly id: string;
  readonly class: LeverClass;
  readonly title: string;
  readonly needs: readonly LeverNeed[];
  /** Whether a checkpoint written before it can be resumed after it. */
  readonly survivesCheckpoint: boolean;
  /** Pulled whenever it has anything to do: without it the run fails or crawls on this card, however small it is. */
  readonly required?: true;
  /** Phases whose peak it lowers. */
  readonly moves: readonly Phase[];
  /** `values` already hold what levers earlier in the registry set. */
  readonly options: (values: PlanValues, surroundings: Surroundings) => LeverOptions;
  /** Step time as a multiple of what it was, for a launch whose model is not known; absent: 1. */
  readonly roughFactor?: (from: PlanValues, to: PlanValues) => number;
  /** What it costs beside time, for people; absent: nothing. */
  readonly loses?: (from: PlanValues, to: PlanValues) => string;
}

/** `about 1.3 × the step time`; below 2 % nothing is worth saying. */
const stepTime = (factor: number): string =>
  factor < 1.02 ? 'none' : `about ${factor.toFixed(factor < 1.095 ? 2 : 1)} × the step time`;

/** Predicted seconds of a step; undefined: the model is not known. */
export type StepSeconds = ((values: PlanValues) => number) | undefined;

/** What free levers move is held still: they are no slower by what they are, and prices must not depend on them. */
const settled = (values: PlanValues): PlanValues => ({ ...values, attnImplementation: 'sdpa', lossImpl: 'full' });

/** What a lever's move costs: the ratio of predicted step times, or the lever's own rough figure where there is no prediction. */
export function priceMove(lever: Lever, from: PlanValues, to: PlanValues, stepSeconds: StepSeconds): LeverCost {
  const ratio =
    lever.class === 'free'
      ? 1
      : stepSeconds
        ? stepSeconds(settled(to)) / stepSeconds(settled(from))
        : (lever.roughFactor?.(from, to) ?? 1);
  // A plan is not made for the sake of speed: what is faster costs nothing.
  const factor = Math.max(1, ratio);
  const parts = [lever.loses?.(from, to), stepTime(factor)].filter((part) => part !== undefined && part !== 'none');
  return { factor, text: parts.length > 0 ? parts.join('; ') : 'none' };
}
