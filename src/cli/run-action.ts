import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { error, fail, ok, type Result, warning } from '../core/index.ts';
import {
  type ContinueRequest,
  continueRun,
  type Ending,
  type LaunchTarget,
  type RunHost,
  type RunResult,
  run,
} from '../jobs/index.ts';
import {
  checkJson,
  diagnosticJson,
  diagnosticsJson,
  exitText,
  type RunEvent,
  type RunSummary,
  renderCheck,
  renderDryRun,
  renderRunEvent,
  renderRunSummary,
  renderStart,
  runEventJson,
} from '../report/index.ts';
import { type InTerminal, loadPty } from '../supervisor/index.ts';
import { EXIT } from './exit-codes.ts';
import { underNohup } from './hangup.ts';
import { readLaunchArgs } from './launch-args.ts';
import { createNotices } from './notices.ts';
import { createNotifier } from './notifier.ts';
import { createPorts } from './ports.ts';
import { preflightRequest } from './preflight-request.ts';
import type { RunFlags } from './program.ts';
import { showDiagnostics } from './show.ts';
import { storePort } from './store-port.ts';
import { createTerminal, type Terminal } from './terminal.ts';
import { terminalLink } from './terminal-link.ts';

/** Signals that reach the trainer through us. */
const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/** What our own codes mean, for the last line on stderr. */
const MEANINGS = {
  refused: { code: EXIT.doesNotFit, meaning: 'refused, nothing was started' },
  'cannot-estimate': {
    code: EXIT.cannotEstimate,
    meaning: 'cannot be estimated, and --mode refuse starts only what fits',
  },
  'out-of-vram': { code: EXIT.outOfVram, meaning: 'out of VRAM, and no further retry' },
  'out-of-host-ram': { code: EXIT.outOfHostRam, meaning: 'ended for want of host RAM' },
  'no-new-step': {
    code: EXIT.outOfVram,
    meaning: 'the retry ended at once, without a training step',
  },
  declined: { code: EXIT.doesNotFit, meaning: 'not wanted, nothing was started' },
  elsewhere: { code: EXIT.usage, meaning: 'nothing was started: it is started by its scheduler' },
  'not-found': { code: EXIT.commandNotFound, meaning: 'command not found' },
  'not-executable': {
    code: EXIT.notExecutable,
    meaning: 'permission denied: chmod +x it, or start it with its interpreter (python …)',
  },
  'not-started': { code: EXIT.ownFault, meaning: 'the command could not be started' },
} as const;

/** The trainer's own code, 128+N for a signal as shells have it; or ours. */
export function exitCodeOf(result: RunResult): number {
  if (!('ending' in result)) {
    if (result.kind === 'dry-run') return dryRunCode(result.report.plan?.verdict, result.decision);
    return result.kind === 'usage' ? EXIT.usage : EXIT.unreadableConfig;
  }
  const { ending } = result;
  if (ending.whose === 'snug') return MEANINGS[ending.reason].code;
  if (ending.signal) return 128 + (constants.signals[ending.signal as NodeJS.Signals] ?? 0);
  return ending.exitCode ?? EXIT.ownFault;
}

const exitOf = (ending: Ending, code: number): RunSummary['exit'] =>
  ending.whose === 'trainer' ? { code, whose: 'trainer' } : { whose: 'snug', ...MEANINGS[ending.reason] };

/** A dry run succeeds when the run would be started. */
function dryRunCode(verdict: string | undefined, decision: 'start' | 'stop'): number {
  if (decision === 'start') return EXIT.fits;
  return verdict === 'unknown' || verdict === undefined ? EXIT.cannotEstimate : EXIT.doesNotFit;
}

/** Node answers SIGUSR1 with a debugger, where every other program ends. Schedulers send it, also to a run that has not begun. */
const endEarly = (): never => process.exit(128 + constants.signals.SIGUSR1);

/** `snug run`. */
export async function runAction(launch: string[], flags: RunFlags, command: Command): Promise<void> {
  process.on('SIGUSR1', endEarly);
  const continues = flags.continue !== undefined;
  const targets = continues && launch.length === 0 ? [] : readLaunchArgs(launch, command);
  if (targets.length > 1)
    command.error('error[usage]: run takes one launch at a time\n  help: snug check looks at several');
  if (flags.ask && !(process.stdin.isTTY && process.stderr.isTTY))
    command.error(
      'error[usage]: --ask needs a terminal to ask on\n  help: snug run --dry-run shows the plan without one',
    );
  const terminal = createTerminal({ quiet: flags.quiet === true || flags.json === true });
  const ports = createPorts({ online: flags.online === true, store: storePort });
  const stop = await terminal.spin('looking at the launch and the machine');
  const talk = createTalk(terminal, flags, stop);
  const notifier = flags.onEvent === undefined ? undefined : createNotifier(flags.onEvent);
  if (notifier && !notifier.ok) {
    stop();
    showDiagnostics(terminal, notifier.error);
    process.exitCode = EXIT.usage;
    return;
  }
  const inTerminal = flags.pty === true ? openTerminal() : undefined;
  if (inTerminal && !inTerminal.ok) {
    stop();
    showDiagnostics(terminal, inTerminal.error);
    process.exitCode = EXIT.usage;
    return;
  }
  const bell = flags.bell === true && process.stderr.isTTY === true;
  const notices = createNotices({ notifier: notifier?.value, bell, exitCodeOf });
  const host = notices.around({ ...talk.host, terminal: inTerminal?.value });
  const result = continues
    ? await continueRun(ports, continueRequest(targets[0], flags), host)
    : await run(ports, { ...preflightRequest(targets[0]!, flags, true), ...runFlags(flags) }, host);
  stop();
  talk.finish(result);
  for (const problem of await notices.finish(result)) host.warn(warning('on-event', problem));
  process.exitCode = exitCodeOf(result);
}

/** What `--pty` needs: a terminal to sit at, and a package with a binary for this machine. */
function openTerminal(): Result<InTerminal> {
  const link = terminalLink();
  if (!link) {
    return fail(
      error('no-terminal', '--pty hands the terminal you sit at on to the trainer, and here is none', {
        help: 'leave --pty out: the output passes unchanged all the same',
      }),
    );
  }
  const pty = loadPty(import.meta.url);
  if (pty) return ok({ ...link, pty });
  return fail(
    error('no-pty', '--pty needs the package @lydell/node-pty, which is not installed beside snug', {
      notes: ['it is optional, as it has binaries for Linux, macOS and Windows on x64 and arm64 only'],
      help: 'npm install @lydell/node-pty in the folder of snug, or leave --pty out',
    }),
  );
}

const runFlags = (flags: RunFlags) => ({
  dryRun: flags.dryRun === true,
  ask: flags.ask === true,
  retriesAsked: flags.retries !== undefined,
  ...(flags.stall === undefined ? {} : { stallMs: flags.stall * 60_000 }),
  ...(flags.stallAction === undefined ? {} : { stallAction: flags.stallAction }),
  ...(flags.grace === undefined ? {} : { stopGraceMs: flags.grace * 1000 }),
  ...(flags.logLimit === undefined ? {} : { logLimitBytes: flags.logLimit }),
});

/** Only what was given now; the rest is as it was when the run began. */
function continueRequest(target: LaunchTarget | undefined, flags: RunFlags): ContinueRequest {
  const { set, target: _, ...asked } = preflightRequest(target ?? { kind: 'command', argv: [] }, flags, true);
  return {
    folder: flags.continue === true ? undefined : flags.continue,
    target,
    asked: { ...asked, ...(set.length > 0 ? { set } : {}), ...runFlags(flags) },
  };
}

/** Beside this very file once it is built. */
const WATCHER = fileURLToPath(new URL('./watcher.js', import.meta.url));

/** Said also under `--quiet`. */
const QUIET_TOO = new Set<RunEvent['kind']>([
  'given-up',
  'host-ram-out',
  'stalled',
  'memory-grows',
  'slowed-down',
  'gpu-memory-stuck',
  'made-no-step',
]);

function createTalk(terminal: Terminal, flags: RunFlags, stopSpinner: () => void) {
  const style = { colour: terminal.errColour, width: terminal.width, unicode: terminal.unicode };
  const json = (value: unknown): void => terminal.err(JSON.stringify(value));
  const host: RunHost = {
    stdout: process.stdout,
    stderr: process.stderr,
    pid: process.pid,
    watcherProgram: existsSync(WATCHER) ? WATCHER : undefined,
    exitCodeOf,
    onReport: (report, starts) => {
      stopSpinner();
      if (flags.json) json(checkJson(report));
      else if (!starts) terminal.err(renderCheck(report, { ...style, quiet: flags.quiet === true }));
      else if (!flags.quiet) terminal.err(renderStart(report, style));
    },
    confirm: async (changed) => {
      const { createInterface } = await import('node:readline/promises');
      const prompt = createInterface({ input: process.stdin, output: process.stderr });
      try {
        // An end of input or Ctrl-C is no yes.
        const closed = new Promise<string>((resolve) => void prompt.once('close', () => resolve('')));
        const answer = await Promise.race([
          prompt.question(changed ? 'start it with these changes? [y/N] ' : 'start it as it came? [y/N] '),
          closed,
        ]);
        return /^\s*y(es)?\s*$/i.test(answer);
      } finally {
        prompt.close();
      }
    },
    emit: (event) => {
      if (flags.json) json(runEventJson(event));
      else if (!flags.quiet || QUIET_TOO.has(event.kind)) terminal.err(renderRunEvent(event, style));
    },
    beginLine: (unfinished) => {
      const sameScreen = process.stdout.isTTY && process.stderr.isTTY;
      if (unfinished.includes('stderr') || (sameScreen && unfinished.length > 0)) process.stderr.write('\n');
    },
    warn: (diagnostic) => {
      if (flags.json) json({ diagnostic: diagnosticJson(diagnostic) });
      else showDiagnostics(terminal, [diagnostic]);
    },
    onSignal: (listener) => {
      const shielded = underNohup(process.env);
      const listeners: [NodeJS.Signals, () => void][] = FORWARDED.map((name) => [
        name,
        () => {
          if (name !== 'SIGHUP' || !shielded) listener(name);
        },
      ]);
      listeners.push(['SIGCONT', () => listener('SIGCONT')]);
      listeners.push([
        'SIGTSTP',
        () => {
          listener('SIGTSTP');
          // What the signal would have done had nobody listened.
          process.kill(process.pid, 'SIGSTOP');
        },
      ]);
      for (const [name, heard] of listeners) process.on(name, heard);
      process.removeListener('SIGUSR1', endEarly);
      return () => {
        for (const [name, heard] of listeners) process.removeListener(name, heard);
      };
    },
  };
  const finish = (result: RunResult): void => {
    switch (result.kind) {
      case 'usage':
      case 'unreadable':
        if (flags.json) terminal.out(JSON.stringify(diagnosticsJson(result.diagnostics)));
        showDiagnostics(terminal, result.diagnostics);
        return;
      case 'dry-run':
        if (flags.json) {
          terminal.out(JSON.stringify(checkJson(result.report)));
          return;
        }
        terminal.err(renderCheck(result.report, { ...style, quiet: flags.quiet === true }));
        if (result.decision === 'start' && result.report.fitted) {
          terminal.out(renderDryRun(result.report.fitted, { ...style, colour: terminal.outColour }));
        }
        return;
      case 'stopped':
        // Nothing was started: stdout is free for the data.
        if (flags.json) terminal.out(JSON.stringify(checkJson(result.report)));
        if (!flags.json) terminal.err(`snug: ${exitText({ exit: exitOf(result.ending, exitCodeOf(result)) })}`);
        return;
      case 'ended': {
        const { ending, attempts, runFolder } = result;
        const exit = exitOf(ending, exitCodeOf(result));
        if (flags.json) json({ kind: 'summary', run_folder: runFolder, attempts: attempts.length, exit });
        else if (!flags.quiet || exit.code !== 0) terminal.err(renderRunSummary({ attempts, runFolder, exit }, style));
      }
    }
  };
  return { host, finish };
}
