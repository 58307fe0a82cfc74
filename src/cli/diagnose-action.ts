import type { Command } from 'commander';
import { diagnose } from '../jobs/index.ts';
import { type DiagnosisReport, diagnosisJson, type Language, renderDiagnosis } from '../report/index.ts';
import { EXIT } from './exit-codes.ts';
import { openLog } from './open-log.ts';
import { createPorts } from './ports.ts';
import type { DiagnoseFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { createTerminal, type Terminal } from './terminal.ts';

/** `zh_CN.UTF-8`, `zh-TW`: Chinese; everything else English. The order is that of gettext. */
function languageOf(flags: DiagnoseFlags, { LC_ALL, LC_MESSAGES, LANG, LANGUAGE }: NodeJS.ProcessEnv): Language {
  return flags.lang ?? (/^zh\b|^zh_/i.test(LANGUAGE || LC_ALL || LC_MESSAGES || LANG || '') ? 'zh' : 'en');
}

/** `snug diagnose`: what ended a run, one report a run. */
export async function diagnoseAction(logs: string[], flags: DiagnoseFlags, _command: Command): Promise<void> {
  const terminal = createTerminal({ quiet: flags.quiet === true });
  const ports = createPorts({ online: flags.online === true });
  const outcome = await diagnose(ports, { logs, preflight: undefined }, openLog);
  if (outcome.kind !== 'diagnosed') {
    showDiagnostics(terminal, outcome.diagnostics);
    process.exitCode = outcome.kind === 'usage' ? EXIT.usage : EXIT.unreadableConfig;
    return;
  }
  const { reports, problems } = outcome;
  show(reports, languageOf(flags, process.env), flags, terminal);
  showDiagnostics(terminal, problems);
  if (problems.length > 0) process.exitCode = EXIT.unreadableConfig;
  else process.exitCode = reports.every(({ failure }) => failure) ? EXIT.fits : EXIT.nothingRecognised;
}

function show(reports: readonly DiagnosisReport[], language: Language, flags: DiagnoseFlags, terminal: Terminal): void {
  const style = { colour: terminal.outColour, width: terminal.width, unicode: terminal.unicode };
  for (const report of reports) {
    if (flags.json) {
      terminal.out(JSON.stringify(diagnosisJson(report, language)));
      continue;
    }
    if (reports.length > 1) terminal.out(`== ${report.files.join(', ')}`);
    terminal.out(renderDiagnosis(report, language, style));
    if (reports.length > 1) terminal.out('');
  }
}
