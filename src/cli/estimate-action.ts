import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { error, formatBytes, type Ports } from '../core/index.ts';
import { check, estimatePlans, explainChecked, whyUnreadable } from '../jobs/index.ts';
import {
  estimateBody,
  estimateErrorJson,
  estimateJson,
  explainBody,
  renderEstimate,
  renderExplanation,
  type TextOptions,
} from '../report/index.ts';
import { EXIT, worstExitCode } from './exit-codes.ts';
import { readLaunchArgs } from './launch-args.ts';
import { createPorts } from './ports.ts';
import { preflightRequest } from './preflight-request.ts';
import type { EstimateFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { createTerminal, type Terminal } from './terminal.ts';

/** `snug estimate`: the peaks, no verdict. */
export async function estimateAction(launch: string[], flags: EstimateFlags, command: Command): Promise<void> {
  const terminal = createTerminal({ quiet: flags.quiet === true });
  const ports = createPorts({ online: flags.online === true });
  process.exitCode =
    flags.plans === undefined
      ? await estimateLaunches(launch, flags, command, terminal, ports)
      : await estimateFile(flags.plans, flags, terminal, ports);
}

const styleOf = ({ outColour, width, unicode }: Terminal): TextOptions => ({ colour: outColour, width, unicode });

function readPlans(path: string, ports: Ports): { ok: true; text: string } | { ok: false; code: string } {
  if (path === '-') return { ok: true, text: readFileSync(0, 'utf8') };
  const read = ports.files.readText(path);
  return read.ok ? { ok: true, text: read.value } : { ok: false, code: read.code };
}

async function estimateFile(path: string, flags: EstimateFlags, terminal: Terminal, ports: Ports): Promise<number> {
  const plans = readPlans(path, ports);
  if (!plans.ok) {
    showDiagnostics(terminal, [
      error('unreadable-file', `cannot read ${path}: ${whyUnreadable(plans.code)}`, {
        location: path,
        help:
          plans.code === 'ETOOBIG'
            ? `pipe it in: snug estimate --plans - < ${path}`
            : 'give a file with one native config as JSON a line, or - for stdin',
      }),
    ]);
    return EXIT.unreadableConfig;
  }
  const codes: number[] = [];
  for await (const { id, estimate, readable, explanation } of estimatePlans(ports, plans.text, flags.explain)) {
    if (estimate.ok) {
      codes.push(EXIT.fits);
      const { devicePeakBytes, peakPhase } = estimate.value.vram;
      terminal.out(
        flags.json
          ? JSON.stringify({ ...estimateJson(id, estimate.value), ...(explanation ? explainBody(explanation) : {}) })
          : `${id}  ${formatBytes(devicePeakBytes)} on the GPU (${peakPhase}), ${formatBytes(estimate.value.ram.peakBytes)} host RAM`,
      );
      if (explanation && !flags.json) terminal.out(renderExplanation(explanation, styleOf(terminal)));
      continue;
    }
    const [first] = estimate.error;
    codes.push(readable ? EXIT.cannotEstimate : EXIT.unreadableConfig);
    if (flags.json) terminal.out(JSON.stringify(estimateErrorJson(id, first!)));
    else terminal.out(`${id}  not estimated: ${first!.message}`);
  }
  if (codes.length === 0) {
    showDiagnostics(terminal, [
      error('no-plans', `${path} holds no plan`, {
        location: path,
        help: 'write one native config as JSON, with an id, a line',
      }),
    ]);
    return EXIT.unreadableConfig;
  }
  return worstExitCode(codes);
}

async function estimateLaunches(
  launch: string[],
  flags: EstimateFlags,
  command: Command,
  terminal: Terminal,
  ports: Ports,
): Promise<number> {
  let worst: number = EXIT.fits;
  for (const target of readLaunchArgs(launch, command)) {
    const outcome = await check(ports, preflightRequest(target, flags, false));
    if (outcome.kind !== 'checked') {
      showDiagnostics(terminal, outcome.diagnostics);
      return outcome.kind === 'usage' ? EXIT.usage : EXIT.unreadableConfig;
    }
    const { report } = outcome;
    if (!report.estimate) {
      worst = EXIT.cannotEstimate;
      showDiagnostics(terminal, [
        ...(report.plan?.verdict === 'unknown' ? [report.plan.reason] : []),
        ...report.diagnostics,
      ]);
      continue;
    }
    const explained = flags.explain ? explainChecked(outcome) : undefined;
    const explanation = explained?.ok ? explained.value : undefined;
    if (flags.json) {
      const body = { ...estimateBody(report.estimate), ...(explanation ? explainBody(explanation) : {}) };
      terminal.out(JSON.stringify(body));
      continue;
    }
    const style = styleOf(terminal);
    terminal.out(renderEstimate(report, style));
    if (explanation) terminal.out(`\n${renderExplanation(explanation, style)}`);
  }
  return worst;
}
