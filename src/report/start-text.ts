import type { Diagnostic } from '../core/index.ts';
import type { CheckReport } from './check-report.ts';
import { renderCheck } from './check-text.ts';
import { prefixed } from './run-text.ts';
import type { TextOptions } from './text-options.ts';

/** What keeps a run from being estimated does not keep it from starting. */
const noError = (diagnostic: Diagnostic): Diagnostic =>
  diagnostic.severity === 'error' ? { ...diagnostic, severity: 'note' } : diagnostic;

/**
 * What is said of a launch that is started now. A command that is no trainer anybody here knows is not lectured about what an estimate
 * would need. No line break at the end.
 */
export function renderStart(report: CheckReport, options: TextOptions): string {
  const { plan, reading, argv } = report;
  if (plan && plan.verdict !== 'unknown') return renderCheck(report, options);
  if (!reading.stack.some(({ kind }) => kind === 'trainer')) {
    const program = argv.find((word) => /^\S+\.(?:py|sh)$/.test(word)) ?? argv[0];
    const lines = [
      `${program} is no trainer whose settings are known here: it starts as it came, and is watched`,
      '  snug check -- COMMAND says what it takes to make it fit',
    ];
    return prefixed(lines, options);
  }
  const told = renderCheck(
    {
      ...report,
      ...(plan ? { plan: { ...plan, reason: noError(plan.reason) } } : {}),
      diagnostics: report.diagnostics.filter((one) => one !== plan?.reason).map(noError),
    },
    options,
  );
  return `${told}\n${prefixed(['not estimated: it starts as it came, and is watched'], options)}`;
}
