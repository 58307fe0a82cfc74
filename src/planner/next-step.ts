import type { Failure } from '../diagnosis/index.ts';
import type { MemoryBudget, MemoryEstimate } from '../memory/index.ts';
import type { PlanValues, SpecChange } from '../spec/index.ts';
import type { PlanRequest, Policy, Surroundings } from './plan.ts';

/** An attempt that was made: its settings, and what was predicted for them. */
export interface AttemptedPlan {
  readonly values: PlanValues;
  /** undefined: nothing could be predicted. */
  readonly estimate: MemoryEstimate | undefined;
}

export interface ReplanRequest {
  /** The settings as the launch came; every retry is worked out from these, never from the last attempt. */
  readonly values: PlanValues;
  /** All attempts so far, the one that failed last. At least one. */
  readonly attempts: readonly AttemptedPlan[];
  readonly failure: Failure;
  /** undefined: the card is not known. */
  readonly budget: MemoryBudget | undefined;
  readonly policy: Policy;
  readonly surroundings: Surroundings;
  /** undefined: unknown model. */
  readonly estimate: PlanRequest['estimate'] | undefined;
  /** Predicted seconds of a step; undefined: unknown model. */
  readonly stepSeconds?: PlanRequest['stepSeconds'];
  /** As in a plan request. */
  readonly leastBytes?: PlanRequest['leastBytes'] | undefined;
  /** Settings under which the newest usable checkpoint was written; undefined: there is none. */
  readonly checkpoint: PlanValues | undefined;
}

/** A smaller attempt. */
export interface RetryPlan {
  readonly values: PlanValues;
  /** From the launch as it came, not from the last attempt. Where `estimate` is undefined they have no price: `savesBytes` 0, `cost` `not known`. */
  readonly changes: readonly SpecChange[];
  readonly estimate: MemoryEstimate | undefined;
  /** The prediction scaled by what the failure showed, bytes; undefined without a prediction. */
  readonly calibratedBytes: number | undefined;
  /** The failure showed that the prediction was made for another run; it only tells smaller from larger. */
  readonly setAside: boolean;
}

/** What comes after an attempt that ended for want of memory. */
export type NextStep =
  | {
      readonly kind: 'retry';
      readonly plan: RetryPlan;
      /** Whether a checkpoint written so far can be resumed under the new settings; false: the run starts over. */
      readonly keepsCheckpoint: boolean;
      /** Why this plan, one clause. */
      readonly because: string;
    }
  | {
      readonly kind: 'give-up';
      readonly reason: string;
      /** What would help, one line each, the mildest first. */
      readonly wouldHelp: readonly string[];
    };
