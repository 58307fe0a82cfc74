import type { Command } from 'commander';
import { check, type PreflightOutcome } from '../jobs/index.ts';
import { checkJson, diagnosticsJson, partialCheckJson, renderCheck } from '../report/index.ts';
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

/** `snug check`: one report a launch, the worst exit code. */
export async function checkAction(launch: string[], flags: CheckFlags, command: Command): Promise<void> {
  const targets = readLaunchArgs(launch, command);
  const terminal = createTerminal({ quiet: flags.quiet === true });
  const ports = createPorts({ online: flags.online === true });
  const codes: number[] = [];
  for (const target of targets) {
    const stop = await terminal.spin('looking at the launch and the machine');
    const outcome = await check(ports, preflightRequest(target, flags, false));
    stop();
    if (targets.length > 1 && target.kind === 'config' && !flags.json && !flags.quiet)
      terminal.out(`== ${target.path}`);
    codes.push(show(outcome, flags, terminal));
  }
  if (codes.includes(EXIT.usage)) process.exitCode = EXIT.usage;
  else
    process.exitCode = worstExitCode(
      codes.map((code) => (flags.failOn && MILDER[flags.failOn].includes(code) ? EXIT.fits : code)),
    );
}

/** A launch that cannot be read whole still shows what its command line says. */
function unreadJson(outcome: Exclude<PreflightOutcome, { kind: 'checked' }>): object {
  if (outcome.kind === 'usage' || !outcome.partial) return diagnosticsJson(outcome.diagnostics);
  return partialCheckJson(outcome.partial, outcome.diagnostics);
}

function show(outcome: PreflightOutcome, flags: CheckFlags, terminal: Terminal): number {
  if (outcome.kind !== 'checked') {
    if (flags.json) terminal.out(JSON.stringify(unreadJson(outcome)));
    showDiagnostics(terminal, outcome.diagnostics);
    return outcome.kind === 'usage' ? EXIT.usage : EXIT.unreadableConfig;
  }
  const { report } = outcome;
  if (flags.json) terminal.out(JSON.stringify(checkJson(report)));
  else
    terminal.out(
      renderCheck(report, {
        colour: terminal.outColour,
        width: terminal.width,
        unicode: terminal.unicode,
        quiet: flags.quiet === true,
      }),
    );
  return CODES[report.plan?.verdict ?? 'unknown'];
}
