import type { MemoryEstimate, Phase, TermName } from '../estimate.ts';

/** How one term of the device peak came about. */
export interface ExplainedTerm {
  readonly term: TermName;
  /** As in the estimate. */
  readonly bytes: number;
  /** In words, with the names of the inputs. */
  readonly formula: string;
  /** The numbers put in, by name: counts, or bytes where the name ends so. */
  readonly inputs: Readonly<Record<string, number | string>>;
  /** Where the formula comes from: links, or source files of the tools. */
  readonly sources: readonly string[];
}

/** Where in the step the peak is. */
export interface PeakPlace {
  readonly phase: Phase;
  /** `layer 11`, `head and loss`, `optimizer step`. */
  readonly where: string;
  /** What was running there: a module or an op; undefined: the loss, the optimizer, or nothing. */
  readonly op: string | undefined;
}

/** Highest memory of one phase, for comparison with the peak. */
export interface PhasePeak {
  readonly phase: Phase;
  readonly bytes: number;
  readonly where: string;
}

export interface MemoryExplanation {
  readonly estimate: MemoryEstimate;
  readonly peak: PeakPlace;
  /** Allocated bytes, in the order of the step. */
  readonly phases: readonly PhasePeak[];
  /** Terms that are not zero, in the estimate's order; they add up to its device peak. */
  readonly terms: readonly ExplainedTerm[];
}
