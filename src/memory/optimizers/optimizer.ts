import type { Parameter, ParameterGroup } from '../parameters.ts';

/** What an optimizer costs over the trainable tensors, bytes. */
export interface OptimizerCost {
  /** States on the device between steps. */
  readonly statesBytes: number;
  /** Highest transient of one step. */
  readonly temporaryBytes: number;
  /** States that live in host or paged memory instead. */
  readonly hostBytes: number;
}

/** What a launch says about its optimizer beside its name. */
export interface OptimizerSettings {
  /** `optim_args`, `rank=64, update_proj_gap=100`, by name. */
  readonly args: ReadonlyMap<string, string>;
  /** `optim_target_modules`; undefined: not said. */
  readonly targetModules: 'all-linear' | readonly string[] | undefined;
}

/** One family of optimizers. Source: where its step was read. */
export interface OptimizerFamily {
  /** transformers' OptimizerNames it answers to. */
  readonly names: readonly string[];
  readonly source: string;
  /** States and temporaries in words, for people. */
  readonly formula: string;
  /** `groups` holds trainable tensors only; `foreach` limits are the optimizer's own business. */
  readonly cost: (groups: readonly ParameterGroup[], settings: OptimizerSettings) => OptimizerCost;
  /**
   * Set where the step runs inside the backward pass, tensor by tensor, and each gradient ends with it: what the update of
   * one tensor makes beside its gradient, bytes.
   */
  readonly updateBytes?: (parameter: Parameter) => number;
}

/** `name=value, name=value`, as transformers reads `optim_args`. */
export function optimizerArguments(text: string | undefined): ReadonlyMap<string, string> {
  const pairs = (text ?? '').replaceAll(' ', '').split(',');
  return new Map(pairs.filter((pair) => pair.includes('=')).map((pair) => pair.split('=', 2) as [string, string]));
}
