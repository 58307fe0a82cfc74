import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { diagnose, type LaunchTarget } from '../jobs/index.ts';
import { type DiagnosisReport, diagnosisForms, type KnownNames, type Language } from '../report/index.ts';
import { EXIT } from './exit-codes.ts';
import { openLog } from './open-log.ts';
import { createPorts } from './ports.ts';
import { preflightRequest } from './preflight-request.ts';
import type { DiagnoseFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { createTerminal, type Terminal } from './terminal.ts';

/** `zh_CN.UTF-8`, `zh-TW`: Chinese; everything else English. The order is that of gettext. */
function languageOf(flags: DiagnoseFlags, { LC_ALL, LC_MESSAGES, LANG, LANGUAGE }: NodeJS.ProcessEnv): Language {
  return flags.lang ?? (/^zh\b|^zh_/i.test(LANGUAGE || LC_ALL || LC_MESSAGES || LANG || '') ? 'zh' : 'en');
}

/** The training command stands behind `--`, the config behind its flag; commander hands both kinds of operands over as one. */
function splitArgs(operands: readonly string[], flags: DiagnoseFlags, command: Command) {
  const raw = process.argv.slice(2);
  const dashes = raw.indexOf('--');
  const argv = dashes < 0 ? [] : raw.slice(dashes + 1);
  const logs = operands.slice(0, operands.length - argv.length);
  if (argv.length > 0 && flags.config !== undefined) {
    command.error(
      `error[usage]: both a config (${flags.config}) and a command (${argv[0]}) were given\n  help: give one of them`,
    );
  }
  const target: LaunchTarget | undefined =
    argv.length > 0
      ? { kind: 'command', argv }
      : flags.config === undefined
        ? undefined
        : { kind: 'config', path: flags.config };
  return { logs, target };
}

/** `snug diagnose`: what ended a run, one report a run. */
export async function diagnoseAction(operands: string[], flags: DiagnoseFlags, command: Command): Promise<void> {
  const terminal = createTerminal({ quiet: flags.quiet === true });
  const ports = createPorts({ online: flags.online === true });
  const { logs, target } = splitArgs(operands, flags, command);
  const stop = await terminal.spin('reading');
  const outcome = await diagnose(
    ports,
    {
      logs,
      runFolder: flags.run,
      nvidiaSmi: flags.nvidiaSmi,
      dmesg: flags.dmesg,
      preflight: target && preflightRequest(target, flags, false),
    },
    openLog,
  );
  stop();
  if (outcome.kind !== 'diagnosed') {
    showDiagnostics(terminal, outcome.diagnostics);
    process.exitCode = outcome.kind === 'usage' ? EXIT.usage : EXIT.unreadableConfig;
    return;
  }
  const { reports, problems } = outcome;
  await show(reports, languageOf(flags, process.env), flags, terminal);
  showDiagnostics(terminal, problems);
  if (problems.length > 0) process.exitCode = EXIT.unreadableConfig;
  else process.exitCode = reports.every(({ failure }) => failure) ? EXIT.fits : EXIT.nothingRecognised;
}

/** A container's user id may have no name. */
function knownNames(): KnownNames {
  const host = hostname();
  try {
    return { user: userInfo().username, host };
  } catch {
    return { user: undefined, host };
  }
}

/** More runs than this are a list. */
const MOST_IN_FULL = 5;

async function show(
  reports: readonly DiagnosisReport[],
  language: Language,
  flags: DiagnoseFlags,
  terminal: Terminal,
): Promise<void> {
  const { diagnosisJson, diagnosisLine, diagnosisMarkdown, renderDiagnosis } = await diagnosisForms();
  const style = { colour: terminal.outColour, width: terminal.width, unicode: terminal.unicode };
  const textOf = (report: DiagnosisReport): string => {
    if (flags.json) return JSON.stringify(diagnosisJson(report, language));
    if (flags.markdown) return diagnosisMarkdown(report, language, knownNames());
    if (reports.length > MOST_IN_FULL) return diagnosisLine(report, language);
    const head = reports.length > 1 ? `== ${report.files.join(', ')}\n` : '';
    return `${head}${renderDiagnosis(report, language, style)}${reports.length > 1 ? '\n' : ''}`;
  };
  for (const report of reports) terminal.out(textOf(report));
  if (reports.length > MOST_IN_FULL && !flags.json && !flags.markdown && !flags.quiet)
    terminal.err('snug diagnose FILE shows one of them in full');
}
