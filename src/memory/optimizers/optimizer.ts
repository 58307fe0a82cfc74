import type { ParameterGroup } from '../parameters.ts';

/** What an optimizer costs over the trainable tensors, bytes. */
export interface OptimizerCost {
  /** States on the device between steps. */
  readonly statesBytes: number;
  /** Highest transient of one step. */
  readonly temporaryBytes: number;
  /** States that live in host or paged memory instead. */
  readonly hostBytes: number;
}

/** One family of optimizers. Source: where its step was read. */
export interface OptimizerFamily {
  /** transformers' OptimizerNames it answers to. */
  readonly names: readonly string[];
  readonly source: string;
  /** `groups` holds trainable tensors only; `foreach` limits are the optimizer's own business. */
  readonly cost: (groups: readonly ParameterGroup[]) => OptimizerCost;
}
