import type { Plan } from '../planner/index.ts';
import type { Distributed, Strategy } from '../spec/index.ts';
import type { CheckReport } from './check-report.ts';

/** One card of the catalogue with the plan of a launch on it. */
export interface GpuFit {
  /** As one types it after `--gpu`. */
  readonly gpu: string;
  readonly totalBytes: number;
  /** Cards of one machine the plan uses. */
  readonly count: number;
  /** Not as launched: parameters, gradients and optimizer states sharded over the cards in this way. */
  readonly sharded?: Strategy;
  readonly plan: Plan;
  readonly distributed: Distributed;
  /** Host RAM that all processes of one machine need, bytes. */
  readonly hostRamBytes: number;
}

/** A launch on every card. */
export interface GpuSurvey {
  /** What was understood of the launch; its own card means nothing. */
  readonly report: CheckReport;
  /** In the order of the catalogue. */
  readonly fits: readonly GpuFit[];
}

/** A machine needs room for its system and for what else runs there. */
const SYSTEM_BYTES = 4 * 2 ** 30;

/** Sizes memory is sold in, GB. */
const RAM_SIZES = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];

/** The RAM to rent: what the run needs and the system beside it, in a size that is sold; GB. */
export function hostRamToRent(hostRamBytes: number): number {
  const wanted = (hostRamBytes + SYSTEM_BYTES) / 1e9;
  return RAM_SIZES.find((size) => size >= wanted) ?? Math.ceil(wanted / 512) * 512;
}

/** Levers pulled, and what they cost; `as it is` where none. */
export function howText({ plan, sharded }: GpuFit): string {
  if (plan.verdict === 'refuse') return 'does not fit';
  const levers = [...new Set(plan.changes.map(({ lever }) => lever))];
  const slower = plan.verdict === 'rewrite' && plan.stepFactor >= 1.02;
  const cost = slower ? ` (about ${plan.stepFactor.toFixed(plan.stepFactor < 1.095 ? 2 : 1)} × the step time)` : '';
  const parts = [...(sharded ? [`${sharded} over them`] : []), ...levers];
  if (parts.length === 0) return 'as it is';
  return `${parts.join(', ')}${cost}`;
}
