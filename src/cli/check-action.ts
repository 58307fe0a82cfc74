import { appendFileSync } from 'node:fs';
import type { Command } from 'commander';
import { error, type Ports } from '../core/index.ts';
import { check, type LaunchTarget, type PreflightOutcome } from '../jobs/index.ts';
import {
  CHECK_FORMATS,
  type CheckedLaunch,
  type CheckFormat,
  checkJson,
  diagnosticsJson,
  partialCheckJson,
  renderCheck,
} from '../report/index.ts';
import { EXIT, worstExitCode } from './exit-codes.ts';
import { readLaunchArgs } from './launch-args.ts';
import { createPorts } from './ports.ts';
import { preflightRequest } from './preflight-request.ts';
import type { CheckFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { createTerminal, type Terminal } from './terminal.ts';

const CODES = {
  fits: EXIT.fits,
  rewrite: EXIT.fitsAfterRewrite,
  refuse: EXIT.doesNotFit,
  unknown: EXIT.cannotEstimate,
} as const;

/** Outcomes milder than the one named by `--fail-on` count as success. */
const MILDER: Readonly<Record<NonNullable<CheckFlags['failOn']>, readonly number[]>> = {
  rewrite: [],
  refuse: [EXIT.fitsAfterRewrite],
  unknown: [EXIT.fitsAfterRewrite, EXIT.doesNotFit],
};

interface Checked {
  readonly target: LaunchTarget;
  readonly outcome: PreflightOutcome;
  /** What `--fail-on` makes of it. */
  readonly code: number;
}

/** `snug check`: one report a launch, the worst exit code. */
export async function checkAction(launch: string[], flags: CheckFlags, command: Command): Promise<void> {
  const targets = readLaunchArgs(launch, command);
  if (flags.json && flags.format && flags.format !== 'json') {
    command.error(`error[usage]: both --json and --format ${flags.format}\n  help: give one of them`);
  }
  const terminal = createTerminal({ quiet: flags.quiet === true });
  const ports = createPorts({ online: flags.online === true });
  const format = flags.json ? 'json' : (flags.format ?? 'text');
  const checked: Checked[] = [];
  for (const target of targets) {
    const stop = await terminal.spin('looking at the launch and the machine');
    const outcome = await check(ports, preflightRequest(target, flags, false));
    stop();
    const one = { target, outcome, code: codeOf(outcome, flags) };
    checked.push(one);
    if (format === 'json') showJson(outcome, terminal);
    else if (format === 'text') showText(one, targets.length > 1 && !flags.quiet, flags, terminal);
  }
  if (format !== 'text' && format !== 'json') await showFormat(format, checked, terminal, ports);
  const codes = checked.map(({ code }) => code);
  process.exitCode = codes.includes(EXIT.usage) ? EXIT.usage : worstExitCode(codes);
}

function codeOf(outcome: PreflightOutcome, { failOn }: CheckFlags): number {
  if (outcome.kind !== 'checked') return outcome.kind === 'usage' ? EXIT.usage : EXIT.unreadableConfig;
  const code = CODES[outcome.report.plan?.verdict ?? 'unknown'];
  return failOn && MILDER[failOn].includes(code) ? EXIT.fits : code;
}

/** A launch that cannot be read whole still shows what its command line says. */
function unreadJson(outcome: Exclude<PreflightOutcome, { kind: 'checked' }>): object {
  if (outcome.kind === 'usage' || !outcome.partial) return diagnosticsJson(outcome.diagnostics);
  return partialCheckJson(outcome.partial, outcome.diagnostics);
}

function showJson(outcome: PreflightOutcome, terminal: Terminal): void {
  terminal.out(JSON.stringify(outcome.kind === 'checked' ? checkJson(outcome.report) : unreadJson(outcome)));
  if (outcome.kind !== 'checked') showDiagnostics(terminal, outcome.diagnostics);
}

function showText({ target, outcome }: Checked, titled: boolean, flags: CheckFlags, terminal: Terminal): void {
  if (titled && target.kind === 'config') terminal.out(`== ${target.path}`);
  if (outcome.kind !== 'checked') {
    showDiagnostics(terminal, outcome.diagnostics);
    return;
  }
  const { outColour: colour, width, unicode } = terminal;
  terminal.out(renderCheck(outcome.report, { colour, width, unicode, quiet: flags.quiet === true }));
}

const nameOf = (target: LaunchTarget): string => (target.kind === 'config' ? target.path : target.argv.join(' '));

async function showFormat(
  format: CheckFormat,
  checked: readonly Checked[],
  terminal: Terminal,
  ports: Ports,
): Promise<void> {
  const launches: CheckedLaunch[] = checked.map(({ target, outcome, code }) => ({
    name: nameOf(target),
    failed: code !== EXIT.fits,
    ...(outcome.kind === 'checked'
      ? { report: outcome.report, diagnostics: [] }
      : { report: undefined, diagnostics: outcome.diagnostics }),
  }));
  terminal.out(await CHECK_FORMATS[format](launches));
  const summary = ports.environment.GITHUB_STEP_SUMMARY;
  if (format !== 'github' || !summary) return;
  try {
    appendFileSync(summary, `${await CHECK_FORMATS.markdown(launches)}\n`);
  } catch (failure) {
    showDiagnostics(terminal, [
      error('no-job-summary', `the job summary cannot be written: ${(failure as NodeJS.ErrnoException).code}`, {
        location: summary,
        help: 'unset GITHUB_STEP_SUMMARY, or point it at a file that can be written',
      }),
    ]);
  }
}
