import { basename, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Diagnostic, error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { type ContinueRecord, readContinueRecord } from './continue-record.ts';
import { type NamedProcess, stillRuns } from './processes.ts';

/** A run that was broken off and can be gone on with. */
export interface EarlierRun {
  readonly path: string;
  readonly record: ContinueRecord;
  /** `attempts` of its `run.json`, as they stand there. */
  readonly attempts: readonly Readonly<Record<string, unknown>>[];
  readonly startedAt: string | undefined;
}

interface SavedState {
  readonly state?: string;
  readonly exit_code?: number;
  readonly started_at?: string;
  readonly attempts?: readonly Readonly<Record<string, unknown>>[];
}

const problem = (message: string, help: string): Result<never> => fail(error('cannot-continue', message, { help }));

/** The run folder to go on from: the one that was named, else the newest below `.snug/runs`. */
export function findEarlierRun(ports: Ports, asked: string | undefined): Result<EarlierRun> {
  const runs = join(ports.cwd, '.snug', 'runs');
  const named = asked === undefined ? undefined : isAbsolute(asked) ? asked : join(ports.cwd, asked);
  const places =
    named === undefined
      ? ports.files
          .list(runs)
          .toReversed()
          .map((name) => join(runs, name))
      : [named, join(runs, asked!)];
  for (const path of places) {
    const record = readContinueRecord(ports, path);
    if (record) return examine(ports, path, record);
  }
  return asked === undefined
    ? problem('there is no run to continue in .snug/runs', 'start one: snug run -- python train.py …')
    : problem(`${asked} is no run folder that can be continued`, 'name a folder below .snug/runs');
}

function examine(ports: Ports, path: string, record: ContinueRecord): Result<EarlierRun> {
  if (record.cwd !== ports.cwd) {
    return problem(`the run ${basename(path)} was started in ${record.cwd}`, `cd ${record.cwd} first`);
  }
  const state = readState(ports, path);
  if (state.state === 'ended' && state.exit_code === 0) {
    return problem(`the run ${basename(path)} finished well`, 'there is nothing left to do; start a new one');
  }
  return ok({ path, record, attempts: (state.attempts ?? []).map(interrupted), startedAt: state.started_at });
}

/** Written in one step, so whole or not there; a file edited by hand may be neither. */
function readState(ports: Ports, path: string): SavedState {
  const text = ports.files.readText(join(path, 'run.json'));
  try {
    return text.ok ? (JSON.parse(text.value) as SavedState) : {};
  } catch {
    return {};
  }
}

const whose = { snug: 'snug', trainer: 'its trainer' } as const;

const runsStill = (name: 'snug' | 'trainer', { pid }: NamedProcess): Diagnostic =>
  error('run-goes-on', `this run still goes on: ${whose[name]} is process ${pid}`, {
    help: name === 'snug' ? `end it first (kill ${pid}), or wait for it` : `end it first: kill ${pid}`,
  });

const elsewhere = (process: NamedProcess): Diagnostic =>
  error('run-elsewhere', `this run was started on ${process.host}, where it may still go on`, {
    help: `continue it there, or make sure that it has ended and start it anew`,
  });

const LOOK_EVERY_MS = 100;

/**
 * Makes sure that nothing of the earlier run is left: two trainers must never write into one output folder. Its watcher may be
 * about to end the trainer; then that is waited for. Undefined: the way is free.
 */
export async function awaitItsEnd(
  { record }: EarlierRun,
  onWait: (process: NamedProcess) => void,
): Promise<Diagnostic | undefined> {
  const { snug, watcher, trainer } = record.processes;
  const running = snug && stillRuns(snug);
  if (snug && running === undefined) return elsewhere(snug);
  if (snug && running) return runsStill('snug', snug);
  if (watcher && stillRuns(watcher)) {
    onWait(watcher);
    while (stillRuns(watcher)) await sleep(LOOK_EVERY_MS);
  }
  return trainer && stillRuns(trainer) ? runsStill('trainer', trainer) : undefined;
}

/** An attempt whose end nobody saw. */
const interrupted = (attempt: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  attempt.ended_at === undefined ? { ...attempt, interrupted: true } : attempt;
