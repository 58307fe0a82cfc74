import { isAbsolute, join } from 'node:path';
import { type Diagnostic, error, note, type Ports } from '../core/index.ts';
import type { CheckReport, RunEvent } from '../report/index.ts';
import type { SpecChange } from '../spec/index.ts';
import type { InTerminal } from '../supervisor/index.ts';
import { check } from './check.ts';
import type { EarlierRun } from './earlier-run.ts';
import type { LaunchTarget } from './launch-target.ts';
import type { Preflight, PreflightRequest } from './preflight.ts';
import { runAttempts } from './run-attempts.ts';
import type { RunResult } from './run-result.ts';
import { startable } from './startable.ts';

export interface RunRequest extends PreflightRequest {
  readonly dryRun: boolean;
  /** Whether the user is shown the plan and asked before anything is changed. */
  readonly ask?: boolean;
  /** Whether `--retries` was given: then also a mode that leaves settings alone may retry smaller. */
  readonly retriesAsked: boolean;
  /** Past it `output.log` keeps only its head and its tail; default 1 GiB. */
  readonly logLimitBytes?: number | undefined;
  /** Silence of the trainer that is told of; 0: never; default 30 minutes. */
  readonly stallMs?: number | undefined;
  /** Whether such a run is ended; default: it is only told. */
  readonly stallAction?: 'report' | 'stop' | undefined;
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
  /** Start the trainer in a pseudo-terminal; undefined: with pipes. */
  readonly terminal?: InTerminal | undefined;
  /** Script of the process that ends the trainer should snug be killed; undefined: there is none here. */
  readonly watcherProgram: string | undefined;
  readonly emit: (event: RunEvent) => void;
  /** Shown before anything is started; `starts`: the run goes on from here. */
  readonly onReport: (report: CheckReport, starts: boolean) => void;
  /** Asks whether to start, with the changes shown or as it came; called only where `ask` was given. */
  readonly confirm?: (changed: boolean) => Promise<boolean>;
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
  const alone = nodesApart(outcome) && request.policy.mode === undefined;
  const decision = alone ? withoutRewrite(decide(outcome)) : decide(outcome);
  const report = decision.kind === 'start' ? outcome.report : withoutLaunch(outcome.report);
  if (request.dryRun) return { kind: 'dry-run', report, decision: decision.kind };
  host.onReport(report, decision.kind === 'start');
  if (decision.kind === 'stop') return { kind: 'stopped', ending: { whose: 'snug', reason: decision.reason }, report };
  const byHand = cannotStart(outcome, decision.changes);
  if (byHand) {
    host.warn(byHand.why);
    return { kind: 'stopped', ending: { whose: 'snug', reason: byHand.reason }, report };
  }
  if (alone) host.warn(EVERY_NODE);
  const missing = missingProgram(ports, startable(outcome.report.fitted?.argv ?? outcome.reading.command.argv).argv[0]);
  if (missing) {
    host.warn(missing);
    return { kind: 'stopped', ending: { whose: 'snug', reason: 'not-found' }, report };
  }
  const open = decision.changes.length > 0 || outcome.report.plan?.verdict !== 'fits';
  if (request.ask && open && !(await host.confirm?.(decision.changes.length > 0))) {
    return { kind: 'stopped', ending: { whose: 'snug', reason: 'declined' }, report };
  }
  const asked = request.retriesAsked || (outcome.policy.mode === 'rewrite' && !alone);
  return runAttempts(ports, host, {
    preflight: outcome,
    changes: decision.changes,
    request,
    earlier: request.continued,
    maxRetries: asked ? outcome.policy.maxRetries : 0,
  });
}

/** Launchers that start the ranks of every node from one place. */
const STARTS_EVERY_NODE: ReadonlySet<string> = new Set(['srun', 'mpirun', 'mpiexec', 'orterun']);

/** Each of several nodes starts its own launcher, and so its own snug, which knows nothing of the others. */
function nodesApart({ reading }: Preflight): boolean {
  const nodes = reading.spec.distributed?.value?.nodes ?? reading.parallelism?.nodes ?? 1;
  const fromOnePlace =
    reading.wrappers.some((name) => STARTS_EVERY_NODE.has(name)) ||
    reading.stack.some(({ dialect }) => dialect === 'deepspeed');
  return nodes > 1 && !fromOnePlace;
}

const withoutRewrite = (decision: Decision): Decision =>
  decision.kind === 'start' ? { kind: 'start', changes: [] } : decision;

const EVERY_NODE = note(
  'several-nodes',
  'every node starts its own snug, so this one changes and repeats nothing: the run starts as it came and is watched',
  { help: 'snug run --mode rewrite on every node alike, or one snug in front of srun' },
);

/** Why this launch is not started here: a scheduler starts it, or the change stands in a script that no copy can replace. */
function cannotStart(
  { reading, report }: Preflight,
  changes: readonly SpecChange[],
): { readonly why: Diagnostic; readonly reason: 'elsewhere' | 'refused' } | undefined {
  const byHand = changes.length > 0 ? report.fitted?.byHand : undefined;
  const { startsElsewhere } = reading;
  if (startsElsewhere) {
    const help = byHand && `put this into ${byHand.place}: ${byHand.command}`;
    return { why: { ...startsElsewhere, ...(help ? { help } : {}) }, reason: 'elsewhere' };
  }
  if (!byHand) return undefined;
  const why = error(
    'by-hand',
    `the change belongs into ${byHand.place}, and no changed copy is started: ${byHand.reason}`,
    {
      location: byHand.place,
      help: `write it there: ${byHand.command}; or --mode warn starts the script as it came`,
    },
  );
  return { why, reason: 'refused' };
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
