import type { SettingName, TrainingValues } from './training-spec.ts';

/** How much a change of settings may alter what is trained; the order is the order of harm (design: levers and policy). */
export const LEVER_CLASSES = ['free', 'exact', 'near', 'qlora', 'method', 'data'] as const;
export type LeverClass = (typeof LEVER_CLASSES)[number];

/** One setting moved by one lever. */
export interface SpecChange<K extends SettingName = SettingName> {
  readonly setting: K;
  readonly from: TrainingValues[K] | null;
  readonly to: TrainingValues[K];
  /** Lever id, kebab-case. */
  readonly lever: string;
  readonly class: LeverClass;
  /**
   * Predicted saving of device memory per GPU, bytes: this lever's own step on the way from the launch as it came to the plan. The
   * first setting of a lever carries the lever's figure, its others 0, so the sum over all changes is what the plan saves.
   */
  readonly savesBytes: number;
  /** What it costs, for people: `about 1.3 × the step time`, `none`. */
  readonly cost: string;
}
