import type { Command } from 'commander';
import { surveyGpus } from '../jobs/index.ts';
import { diagnosticsJson, gpuSurveyJson, renderGpuSurvey } from '../report/index.ts';
import { EXIT } from './exit-codes.ts';
import { readLaunchArgs } from './launch-args.ts';
import { createPorts } from './ports.ts';
import { preflightRequest } from './preflight-request.ts';
import type { GpusFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { createTerminal } from './terminal.ts';

const CODES = { usage: EXIT.usage, unreadable: EXIT.unreadableConfig, unknown: EXIT.cannotEstimate } as const;

/** `snug gpus`: which cards a launch fits; 0 where at least one does, 11 where none does. */
export async function gpusAction(launch: string[], flags: GpusFlags, command: Command): Promise<void> {
  const [target, ...more] = readLaunchArgs(launch, command);
  if (more.length > 0) {
    command.error('error[usage]: gpus looks at one launch at a time\n  help: snug gpus CONFIG, once for each');
  }
  const terminal = createTerminal({ quiet: flags.quiet === true });
  const stop = await terminal.spin('trying every card');
  const outcome = await surveyGpus(
    createPorts({ online: flags.online === true }),
    preflightRequest(target!, flags, false),
  );
  stop();
  if (outcome.kind !== 'surveyed') {
    const diagnostics = outcome.kind === 'unknown' ? [outcome.reason, ...outcome.diagnostics] : outcome.diagnostics;
    if (flags.json) terminal.out(JSON.stringify(diagnosticsJson(diagnostics)));
    showDiagnostics(terminal, diagnostics);
    process.exitCode = CODES[outcome.kind];
    return;
  }
  const { survey } = outcome;
  if (flags.json) terminal.out(JSON.stringify(gpuSurveyJson(survey)));
  else {
    const { outColour: colour, width, unicode } = terminal;
    terminal.out(await renderGpuSurvey(survey, { colour, width, unicode, ram: flags.ram === true }));
  }
  process.exitCode = survey.fits.some(({ plan }) => plan.verdict !== 'refuse') ? EXIT.fits : EXIT.doesNotFit;
}
