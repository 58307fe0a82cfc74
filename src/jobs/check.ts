import { join } from 'node:path';
import type { Ports } from '../core/index.ts';
import { writeLaunch } from '../dialects/index.ts';
import { type PreflightOutcome, type PreflightRequest, preflight } from './preflight.ts';
import { runName } from './run-folder.ts';

/** A preflight with the fitted launch written out: the command and the text of every changed copy. Nothing is written. */
export async function check(ports: Ports, request: PreflightRequest): Promise<PreflightOutcome> {
  const outcome = await preflight(ports, request);
  if (outcome.kind !== 'checked') return outcome;
  // A config without a command is there to be checked; there is nothing to write the changes into.
  if (outcome.reading.command.argv.length === 0) return outcome;
  const { plan } = outcome.report;
  const name = runName(
    outcome.reading.command.argv,
    request.target.kind === 'config' ? request.target.path : undefined,
  );
  const fitted = writeLaunch(outcome.reading, {
    changes: plan && plan.verdict !== 'unknown' ? plan.changes : [],
    // Where `run` would put the copies, but for the time in the name.
    copyFolder: join(ports.cwd, '.snug', 'runs', name, 'attempts', '1'),
  });
  if (!fitted.ok)
    return { ...outcome, report: { ...outcome.report, diagnostics: [...outcome.report.diagnostics, ...fitted.error] } };
  return { ...outcome, report: { ...outcome.report, fitted: fitted.value } };
}
