import type { Diagnostic } from '../core/index.ts';
import type { FittedLaunch, LaunchReading } from '../dialects/index.ts';
import type { Gpu, Hardware } from '../hardware/index.ts';
import type { MemoryBudget, MemoryEstimate } from '../memory/index.ts';
import type { LocatedModel, ModelFacts } from '../model/index.ts';
import type { Plan, Policy } from '../planner/index.ts';
import type { TrainingSpec } from '../spec/index.ts';

/** No plan could be made; `reason` says what is missing. */
export interface UnknownPlan {
  readonly verdict: 'unknown';
  readonly reason: Diagnostic;
}

/** Everything a preflight found out about one launch. What could not be found out is absent. */
export interface CheckReport {
  readonly argv: readonly string[];
  /** Environment the command itself sets. */
  readonly env: Readonly<Record<string, string>>;
  readonly reading: Pick<LaunchReading, 'stack' | 'wrappers' | 'files' | 'unread' | 'parallelism'>;
  readonly spec: TrainingSpec;
  readonly model?: Pick<LocatedModel, 'nameOrPath' | 'place' | 'source'> & { readonly facts: ModelFacts };
  readonly hardware: Hardware;
  /** The card that decides: the one with the least free memory. */
  readonly device?: Gpu;
  readonly estimate?: MemoryEstimate;
  readonly budget?: MemoryBudget;
  readonly plan?: Plan | UnknownPlan;
  /** The launch with the plan's changes written into it. */
  readonly fitted?: FittedLaunch;
  readonly diagnostics: readonly Diagnostic[];
  /** The policy in force; absent: the default. */
  readonly policy?: Policy;
  /** Text of the files that were read, by the path used in origins, for excerpts under a message. */
  readonly sources?: Readonly<Record<string, string>>;
}
