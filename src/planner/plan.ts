import type { Result } from '../core/index.ts';
import type { MemoryBudget, MemoryEstimate } from '../memory/index.ts';
import type { LeverClass, PlanValues, SettingName, SpecChange } from '../spec/index.ts';
import type { StepSeconds } from './levers/lever.ts';

export type PolicyMode = 'rewrite' | 'refuse' | 'warn';

/** What the user lets snug do. */
export interface Policy {
  readonly mode: PolicyMode;
  /** Classes of levers, and single levers by their id. */
  readonly allow: readonly string[];
  /** Levers, or whole classes, that are never pulled, whatever is allowed. */
  readonly forbid: readonly string[];
  /** Settings that stay as they are. */
  readonly keep: readonly SettingName[];
  readonly maxRetries: number;
  /** Share of the card kept free, 0.05. */
  readonly headroom: number;
}

export const DEFAULT_POLICY: Policy = {
  mode: 'rewrite',
  allow: ['free', 'exact', 'near', 'qlora'],
  forbid: [],
  keep: [],
  maxRetries: 3,
  headroom: 0.05,
};

/** What stands around the run and decides which levers exist. */
export interface Surroundings {
  /** Whether the dialect can write this setting to this value, and all of `together` with it; else the reason, one clause. */
  readonly writable: (setting: SettingName, to: unknown, together?: Readonly<Partial<PlanValues>>) => true | string;
  /** Whether these import in the trainer's Python; `unknown`: not asked, or no way to ask (planning for another machine); it counts as importing. */
  readonly packages: {
    readonly bitsandbytes: boolean | 'unknown';
    readonly flashAttn: boolean | 'unknown';
    readonly liger: boolean | 'unknown';
  };
  readonly computeCapability: { readonly major: number; readonly minor: number } | undefined;
  /** Host RAM that is available, bytes. */
  readonly hostRamBytes: number | undefined;
  readonly platform: string;
}

export interface PlanRequest {
  readonly values: PlanValues;
  readonly budget: MemoryBudget;
  readonly policy: Policy;
  readonly surroundings: Surroundings;
  /** The estimator for this model on this card. */
  readonly estimate: (values: PlanValues) => Result<MemoryEstimate>;
  /** Predicted seconds of a step; undefined: levers have only their rough prices. */
  readonly stepSeconds?: StepSeconds;
  /** Device bytes that the estimate of the same values is never below, known sooner than it; absent: there is no such bound. */
  readonly leastBytes?: (values: PlanValues) => Result<number>;
  /** How many other plans to name beside the best; absent: none. */
  readonly alternatives?: number;
}

export type Plan =
  | {
      readonly verdict: 'fits';
      readonly values: PlanValues;
      readonly changes: readonly [];
      readonly before: MemoryEstimate;
      readonly estimate: MemoryEstimate;
    }
  | {
      readonly verdict: 'rewrite';
      readonly values: PlanValues;
      readonly changes: readonly SpecChange[];
      /** Predicted step time as a multiple of what it was, at least 1. */
      readonly stepFactor: number;
      /** Other ways to make it fit, best first; absent: not asked for. */
      readonly alternatives?: readonly Alternative[];
      readonly before: MemoryEstimate;
      readonly estimate: MemoryEstimate;
    }
  | {
      readonly verdict: 'refuse';
      readonly values: PlanValues;
      readonly changes: readonly [];
      readonly before: MemoryEstimate;
      readonly estimate: MemoryEstimate;
      readonly refusal: Refusal;
    };

/** Another plan that fits. */
export interface Alternative {
  readonly values: PlanValues;
  readonly changes: readonly SpecChange[];
  readonly estimate: MemoryEstimate;
  readonly stepFactor: number;
}

/** Why nothing fits, and what would. */
export interface Refusal {
  /** Device peak of the smallest permitted plan − usable bytes. */
  readonly shortfallBytes: number;
  /** Host RAM peak of that plan − available RAM, bytes; 0 when it suffices or is not known. */
  readonly hostShortfallBytes: number;
  /** The smallest plan the policy permits. */
  readonly smallest: { readonly changes: readonly SpecChange[]; readonly estimate: MemoryEstimate };
  /** Plans that would fit if the policy allowed another class, mildest first. */
  readonly wouldFit: readonly {
    readonly allow: LeverClass;
    readonly changes: readonly SpecChange[];
    readonly estimate: MemoryEstimate;
  }[];
  /** The mildest plan that would fit if the launch could be told some settings more; absent: none, or nothing is untold. */
  readonly ifTold?: {
    /** What the launch cannot be told as it is. */
    readonly settings: readonly SettingName[];
    readonly changes: readonly SpecChange[];
    readonly estimate: MemoryEstimate;
  };
  /** Permitted levers that were left out, each with its reason (`bitsandbytes does not import`, …). */
  readonly unavailable: readonly {
    readonly lever: string;
    readonly reason: string;
    /** Settings that the launch cannot be told; absent: something else stands in the way. */
    readonly untold?: readonly SettingName[];
  }[];
}
