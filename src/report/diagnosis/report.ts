import type { Arithmetic, Failure, LookId, RemedyId, Verdict } from '../../diagnosis/index.ts';
import type { NoteId } from './phrases/index.ts';

/** Something to say of the input, with the values its phrase takes. */
export interface DiagnosisNote {
  readonly id: NoteId;
  readonly values: Readonly<Record<string, string | number>>;
}

export interface Remedy {
  readonly id: RemedyId;
  /** Device memory it takes off by itself, by the estimate; undefined: not priced. */
  readonly savesBytes?: number;
}

/** A place of the user's launch as it is and as it should be, in that place's own words. */
export interface ShownEdit {
  /** `sft.yaml:12`, `command`, `environment`. */
  readonly place: string;
  /** undefined: it is not there yet. */
  readonly before: string | undefined;
  readonly after: string;
}

/** Settings that are predicted to fit after what the failure showed. */
export interface FittingSettings {
  readonly edits: readonly ShownEdit[];
  /** Device peak as it was and as it will be, bytes, scaled by what the failure showed where that could be told. */
  readonly beforeBytes: number | undefined;
  readonly afterBytes: number | undefined;
}

/** A machine that would do, where settings alone do not. */
export interface LargerCard {
  /** Device memory needed with the smallest permitted settings, headroom included, bytes. */
  readonly neededBytes: number;
  /** Cards that have it, the smallest first. */
  readonly cards: readonly string[];
}

/** Everything `snug diagnose` says about one run. */
export interface DiagnosisReport {
  /** Logs that were read, as they were named. */
  readonly files: readonly string[];
  /** undefined: nothing of any kind was recognised. */
  readonly failure: Failure | undefined;
  readonly verdict: Verdict | undefined;
  readonly sums: Arithmetic | undefined;
  readonly remedies: readonly Remedy[];
  readonly looks: readonly LookId[];
  readonly notes: readonly DiagnosisNote[];
  readonly fitting?: FittingSettings;
  readonly larger?: LargerCard;
  /** Host RAM that must be free for the run by the estimate, all ranks of a node, bytes. */
  readonly neededRamBytes?: number;
  /** What is known of the run, for a ticket: `key: value`. */
  readonly settings?: readonly string[];
  readonly versions?: string;
}
