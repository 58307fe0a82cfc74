import { isAbsolute, join } from 'node:path';
import { type Diagnostic, error, type Ports } from '../core/index.ts';
import type { CheckReport, RunEvent } from '../report/index.ts';
import type { SpecChange } from '../spec/index.ts';
import { check } from './check.ts';
import type { EarlierRun } from './earlier-run.ts';
import type { LaunchTarget } from './launch-target.ts';
import type { Preflight, PreflightRequest } from './preflight.ts';
import { runAttempts } from './run-attempts.ts';
import type { RunResult } from './run-result.ts';
import { startable } from './startable.ts';

export interface RunRequest extends PreflightRequest {
  readonly dryRun: boolean;
  /** Whether `--retries` was given: then also a mode that leaves settings alone may retry smaller. */
  readonly retriesAsked: boolean;
  /** Past it `output.log` keeps only its head and its tail; default 1 GiB. */
  readonly logLimitBytes?: number | undefined;
  /** From SIGTERM to SIGKILL; default 30 s. */
  readonly stopGraceMs?: number | undefined;
  /** The broken-off run to go on with. */
  readonly continued?: EarlierRun | undefined;
}

/** What a run needs of the terminal it runs in. */
export interface RunHost {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  readonly pid: number;
  /** Script of the process that ends the trainer should snug be killed; undefined: there is none here. */
  readonly watcherProgram: string | undefined;
  readonly emit: (event: RunEvent) => void;
  /** Shown before anything is started; `starts`: the run goes on from here. */
  readonly onReport: (report: CheckReport, starts: boolean) => void;
  /** Registers for signals sent to snug; returns how to stop listening. */
  readonly onSignal: (listener: (signal: NodeJS.Signals) => void) => () => void;
  /** The trainer's output may have ended in the middle of a line (a progress bar); talk begins on a new one. */
  readonly beginLine: (unfinished: readonly ('stdout' | 'stderr')[]) => void;
  readonly warn: (diagnostic: Diagnostic) => void;
  readonly exitCodeOf: (result: RunResult) => number;
}

/** What is started under the policy's mode: the plan's changes, none, or nothing at all. */
type Decision =
  | { readonly kind: 'start'; readonly changes: readonly SpecChange[] }
  | { readonly kind: 'stop'; readonly reason: 'refused' | 'cannot-estimate' };

/** `rewrite` starts the fitted run, `refuse` only what fits as it is, `warn` the run as it came. */
export function decide({ report, policy }: Pick<Preflight, 'report' | 'policy'>): Decision {
  const plan = report.plan;
  if (plan?.verdict === 'fits') return { kind: 'start', changes: [] };
  if (!plan || plan.verdict === 'unknown') {
    return policy.mode === 'refuse' ? { kind: 'stop', reason: 'cannot-estimate' } : { kind: 'start', changes: [] };
  }
  if (policy.mode === 'warn') return { kind: 'start', changes: [] };
  if (plan.verdict === 'rewrite' && policy.mode === 'rewrite') return { kind: 'start', changes: plan.changes };
  return { kind: 'stop', reason: 'refused' };
}

/** The main job: make it fit, start it, look after it, bring it home. */
export async function run(ports: Ports, request: RunRequest, host: RunHost): Promise<RunResult> {
  const outcome = await check(ports, request);
  if (outcome.kind !== 'checked') return outcome;
  if (outcome.reading.command.argv.length === 0) {
    return { kind: 'unreadable', diagnostics: [noCommand(request.target)] };
  }
  const decision = decide(outcome);
  const report = decision.kind === 'start' ? outcome.report : withoutLaunch(outcome.report);
  if (request.dryRun) return { kind: 'dry-run', report, decision: decision.kind };
  host.onReport(report, decision.kind === 'start');
  if (decision.kind === 'stop') return { kind: 'stopped', ending: { whose: 'snug', reason: decision.reason }, report };
  const missing = missingProgram(ports, startable(outcome.report.fitted?.argv ?? outcome.reading.command.argv).argv[0]);
  if (missing) {
    host.warn(missing);
    return { kind: 'stopped', ending: { whose: 'snug', reason: 'not-found' }, report };
  }
  const asked = request.retriesAsked || outcome.policy.mode === 'rewrite';
  return runAttempts(ports, host, {
    preflight: outcome,
    changes: decision.changes,
    request,
    earlier: request.continued,
    maxRetries: asked ? outcome.policy.maxRetries : 0,
  });
}

const noCommand = (target: LaunchTarget): Diagnostic =>
  error('no-command', 'the config has no command to start', {
    ...(target.kind === 'config' ? { location: target.path } : {}),
    help: 'add command: python train.py --bs {per_device_train_batch_size} …; snug check needs none',
  });

/** Nothing is written for a command that cannot start at all. */
function missingProgram(ports: Ports, program: string | undefined): Diagnostic | undefined {
  if (program === undefined) return undefined;
  const found = program.includes('/')
    ? ports.files.info(isAbsolute(program) ? program : join(ports.cwd, program)) !== undefined
    : ports.programs.which(program) !== undefined;
  if (found) return undefined;
  return error('command-not-found', `cannot find the program ${program}`, {
    help: program.includes('/') ? 'check the path' : 'install it, or activate the environment it is in',
  });
}

const withoutLaunch = ({ fitted: _, ...report }: CheckReport): CheckReport => report;
