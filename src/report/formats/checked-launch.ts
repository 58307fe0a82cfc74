import { type Diagnostic, formatBytes, note, warning } from '../../core/index.ts';
import { formatOrigin, type SpecChange } from '../../spec/index.ts';
import { groupByLever, movesText } from '../change-text.ts';
import type { CheckReport } from '../check-report.ts';
import { refusalDiagnostic } from '../verdict.ts';

/** One of the launches of a `snug check`, as build systems are told of it. */
export interface CheckedLaunch {
  /** The config's path, or the command. */
  readonly name: string;
  /** undefined: it could not be read; `diagnostics` say why. */
  readonly report: CheckReport | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** Whether it counts as a failure under `--fail-on`. */
  readonly failed: boolean;
}

/** `fits`, `fits after a rewrite`, `does not fit`, `cannot be estimated`, `cannot be read`. */
export function outcomeText({ report }: CheckedLaunch): string {
  switch (report?.plan?.verdict) {
    case 'fits':
      return 'fits';
    case 'rewrite':
      return 'fits after a rewrite';
    case 'refuse':
      return 'does not fit';
    case 'unknown':
      return 'cannot be estimated';
    default:
      return 'cannot be read';
  }
}

/** Changes as one line of text each, one a lever. */
export const changeLines = (changes: readonly SpecChange[], { spec }: CheckReport): readonly string[] =>
  groupByLever(changes).map((group) => {
    const { cost } = group[0]!;
    return `${movesText(group, spec.distributed?.value ?? undefined)}${cost === 'none' ? '' : ` (${cost})`}`;
  });

/** The verdict as one message; a launch that cannot be read has the first of its own. */
export function verdictMessage({ report, diagnostics }: CheckedLaunch): Diagnostic | undefined {
  const plan = report?.plan;
  if (!plan) return diagnostics[0];
  const usable = report.budget ? ` of ${formatBytes(report.budget.usableBytes)} usable` : '';
  const origin = report.spec.perDeviceTrainBatchSize?.origin;
  switch (plan.verdict) {
    case 'fits':
      return note('fits', `fits: ${formatBytes(plan.estimate.vram.devicePeakBytes)}${usable}`);
    case 'rewrite': {
      const [before, after] = [plan.before, plan.estimate].map(({ vram }) => formatBytes(vram.devicePeakBytes));
      return warning('fits-after-rewrite', `fits after a rewrite: ${before} -> ${after}${usable}`, {
        ...(origin ? { location: formatOrigin(origin) } : {}),
        notes: changeLines(plan.changes, report),
        help: 'snug run makes these changes in a copy; to keep them, write them into the config',
      });
    }
    case 'refuse':
      return refusalDiagnostic(report, plan);
    case 'unknown':
      return plan.reason;
  }
}

/** Everything worth a line, the verdict first, without what it says already. */
export function messagesOf(launch: CheckedLaunch): readonly Diagnostic[] {
  const verdict = verdictMessage(launch);
  const others = [...(launch.report?.diagnostics ?? []), ...launch.diagnostics].filter(
    ({ code, message }) => code !== verdict?.code || message !== verdict.message,
  );
  return verdict ? [verdict, ...others] : others;
}
