import { isAbsolute, join } from 'node:path';
import type { Diagnostic, Ports } from '../core/index.ts';
import { classify, type Evidence, type Failure } from '../diagnosis/index.ts';
import { allocatorSetting } from '../dialects/index.ts';
import { detectHardware, type Hardware, sampleVram } from '../hardware/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import { type AttemptSummary, type RunEvent, secretsIn } from '../report/index.ts';
import type { SpecChange } from '../spec/index.ts';
import {
  type AttemptRequest,
  defaultTimings,
  type RunningAttempt,
  type Stall,
  startAttempt,
  startWatcher,
} from '../supervisor/index.ts';
import { saveLaunch, saveOutcome } from './attempt-files.ts';
import type { CheckpointWriter } from './checkpoint-of-run.ts';
import { type ContinueAttempt, saveContinueRecord } from './continue-record.ts';
import { continueAttempt, earlierWriters } from './continued.ts';
import { decideNext } from './decide-next.ts';
import type { EarlierRun } from './earlier-run.ts';
import { joinNeighbourhood } from './neighbours.ts';
import { type PlannedAttempt, startingValues } from './next-attempt.ts';
import type { Preflight } from './preflight.ts';
import { prepareAttempt } from './prepare-attempt.ts';
import { nameProcess } from './processes.ts';
import type { RunHost, RunRequest } from './run.ts';
import { createRunFolder, openRunFolder, type RunFolder, runName } from './run-folder.ts';
import { type AttemptRecord, createRunRecord, type Ending, type RunState } from './run-record.ts';
import type { RunResult } from './run-result.ts';
import { waitUntilFree } from './wait-until-free.ts';

export interface AttemptsRequest {
  readonly preflight: Preflight;
  readonly changes: readonly SpecChange[];
  /** As it was asked for; a later `--continue` asks the same. */
  readonly request: RunRequest;
  readonly maxRetries: number;
  /** The broken-off run to go on with. */
  readonly earlier: EarlierRun | undefined;
}

/** An attempt that was made. */
export interface MadeAttempt extends CheckpointWriter {
  readonly planned: PlannedAttempt;
  readonly evidence: Evidence;
  readonly failure: Failure | undefined;
}

/** Starts the run, and starts it again smaller for as long as it runs out of device memory and the policy allows. */
export async function runAttempts(ports: Ports, host: RunHost, request: AttemptsRequest): Promise<RunResult> {
  const { preflight, earlier } = request;
  const { target } = request.request;
  const name = runName(preflight.reading.command.argv, target.kind === 'config' ? target.path : undefined);
  const folder = earlier ? openRunFolder(ports, earlier.path) : createRunFolder(ports, name);
  if (!folder.ok) return { kind: 'unreadable', diagnostics: folder.error };
  const loop = await createLoop(ports, host, request, folder.value);
  try {
    return await loop.go();
  } finally {
    await loop.close();
  }
}

async function createLoop(ports: Ports, host: RunHost, request: AttemptsRequest, folder: RunFolder) {
  const { preflight, earlier } = request;
  const watcher = host.watcherProgram === undefined ? undefined : startWatcher(host.watcherProgram);
  const { argv } = preflight.reading.command;
  const save = createRunRecord(ports, folder, { argv, pid: host.pid, before: earlier });
  const secrets = secretsIn(argv, { ...ports.environment, ...preflight.reading.env });
  const before = earlier ? earlierWriters(earlier, preflight) : [];
  const attemptsBefore = Math.max(
    0,
    ...ports.files.list(join(folder.path, 'attempts')).map(Number).filter(Number.isInteger),
  );
  const kept: ContinueAttempt[] = [...(earlier?.record.attempts ?? [])];
  const made: MadeAttempt[] = [];
  const records: AttemptRecord[] = [];
  const summaries: AttemptSummary[] = [];
  const began = ports.now().getTime();
  let running: RunningAttempt | undefined;
  let signalled: NodeJS.Signals | undefined;
  let warned = false;
  let requests = 0;
  /** While the trainer writes. */
  const tellBetween = (event: RunEvent): void => {
    host.beginLine(running?.interrupt() ?? []);
    host.emit(event);
  };
  const stopListening = host.onSignal((name) => {
    if (name === 'SIGTSTP' || name === 'SIGCONT') {
      running?.signal(name);
      return;
    }
    signalled ??= name;
    if (running) {
      // SIGUSR1 and SIGUSR2 only warn of an end.
      if (!name.startsWith('SIGUSR')) requests += 1;
      tellBetween({ kind: 'signal-forwarded', signal: name, requests: name.startsWith('SIGUSR') ? 0 : requests });
      running.signal(name);
    }
  });

  const tell = (problem: Diagnostic | undefined): void => {
    // A full disk must not end a run that trains well; once is enough to say.
    if (problem && !warned) host.warn({ ...problem, severity: 'warning' });
    warned ||= problem !== undefined;
  };
  const saveState = (state: RunState['state'], rest: Partial<RunState> = {}): void =>
    tell(save({ state, verdict: preflight.report.plan?.verdict ?? 'unknown', attempts: records, ...rest }));

  const saveContinue = (trainer: number | undefined): void =>
    tell(
      saveContinueRecord(folder, {
        request: request.request,
        cwd: ports.cwd,
        attempts: kept,
        processes: {
          snug: nameProcess(host.pid),
          watcher: nameProcess(watcher?.pid),
          trainer: nameProcess(trainer),
        },
      }),
    );

  // A kill from here on leaves something to continue.
  saveState('starting');
  saveContinue(undefined);
  const { gpus, source } = await runningGpus(ports, preflight);
  const sample = gpus.length > 0 ? () => sampleVram(ports, gpus, source) : undefined;
  const baseline = sample ? await sample() : undefined;

  const neighbourhood = joinNeighbourhood(ports, {
    pid: host.pid,
    runFolder: folder.path,
    outputDir: preflight.reading.spec.outputDir?.value ?? undefined,
    gpus,
  });
  for (const neighbour of neighbourhood.found) host.warn(neighbour);

  const end = (ending: Ending): RunResult => {
    const result: RunResult = { kind: 'ended', ending, attempts: summaries, runFolder: folder.path };
    saveState('ended', { ending, exitCode: host.exitCodeOf(result) });
    return result;
  };

  async function attempt(planned: PlannedAttempt, number: number): Promise<MadeAttempt | readonly Diagnostic[]> {
    const prepared = await prepareAttempt(ports, folder, {
      preflight,
      planned,
      number,
      retries: request.maxRetries > 0,
    });
    if (!prepared.ok) return prepared.error;
    const { path, launch, fitted, outputDir } = prepared.value;
    for (const event of prepared.value.events) host.emit(event);
    for (const problem of saveLaunch(folder, path, launch, fitted, planned.changes)) tell(problem);
    const started = ports.now();
    records.push({
      attempt: number,
      argv: launch.argv,
      startedAt: started.toISOString(),
      predictedVramBytes: planned.estimate?.vram.devicePeakBytes ?? null,
      predictedRamBytes: planned.estimate?.ram.peakBytes ?? null,
      resumedFrom: planned.resumeFrom?.path ?? null,
      outputDir: outputDir ?? null,
    });
    kept.push({ startedMs: started.getTime(), outputDir, changes: planned.changes });
    // Before the trainer writes anything: what it leaves must be known to be this run's.
    saveContinue(undefined);
    host.emit({
      kind: 'attempt-started',
      attempt: number,
      argv: launch.argv,
      changes: planned.changes,
      predicted: planned.estimate,
    });
    const allocator = allocatorSetting({ ...ports.environment, ...launch.env })?.value ?? '';
    const child = startAttempt({
      argv: launch.argv,
      env: { ...ports.environment, ...launch.env },
      cwd: launch.cwd,
      logPath: join(path, 'output.log'),
      logLimitBytes: request.request.logLimitBytes,
      secrets,
      watcher,
      samplesPath: join(path, 'samples.jsonl'),
      terminal: host.terminal,
      stdout: host.stdout,
      stderr: host.stderr,
      sampleVram: sample,
      expandableSegments: allocator.includes('expandable_segments:True'),
      ...defaultTimings,
      stopGraceMs: request.request.stopGraceMs ?? defaultTimings.stopGraceMs,
      outputDir: outputDir === undefined || isAbsolute(outputDir) ? outputDir : join(launch.cwd, outputDir),
      trends: {
        vramCapacityBytes: smallest(gpus.map(({ totalBytes }) => totalBytes)),
        ramCapacityBytes: preflight.hardware.host?.availableBytes,
        onGrowth: (growth, memory) => tellBetween({ kind: 'memory-grows', memory, growth }),
        onSlowdown: (slowdown) => tellBetween({ kind: 'slowed-down', ...slowdown }),
      },
      ...stallOf(request.request, (stall, stops) => tellBetween({ kind: 'stalled', ...stall, stops })),
    });
    running = child;
    saveState('running');
    saveContinue(child.pid);
    const evidence = await child.ended;
    running = undefined;
    host.beginLine(evidence.unfinishedLines ?? []);
    return settle(planned, number, started, outputDir, evidence, path);
  }

  /** Judges an attempt that ended and writes it down. */
  function settle(
    planned: PlannedAttempt,
    number: number,
    started: Date,
    outputDir: string | undefined,
    evidence: Evidence,
    path: string,
  ): MadeAttempt {
    const failure = classify(evidence);
    const { exitCode, signal, peakVramBytes, peakRamBytes } = evidence;
    const ended = ports.now();
    const durationMs = ended.getTime() - started.getTime();
    records[records.length - 1] = {
      ...records.at(-1)!,
      endedAt: ended.toISOString(),
      exitCode: exitCode ?? null,
      signal: signal ?? null,
      failure: failure ?? null,
      peakVramBytes: peakVramBytes ?? null,
      peakRamBytes,
    };
    tell(saveOutcome(folder, path, { evidence, failure, durationMs }, secrets));
    summaries.push({
      attempt: number,
      durationMs,
      end: { exitCode, signal },
      failure,
      changes: planned.changes,
      distributed: planned.values?.distributed,
      predictedBytes: planned.estimate?.vram.devicePeakBytes,
      peakVramBytes,
      fromStep: planned.resumeFrom?.step,
    });
    host.emit({
      kind: 'attempt-ended',
      attempt: number,
      end: { exitCode, signal },
      durationMs,
      failure,
      predicted: planned.estimate,
      peakVramBytes,
      peakRamBytes,
      forwardedSignal: evidence.forwardedSignal,
      hostRamBytes: evidence.hostRamBytes,
      cgroupLimitBytes: evidence.cgroupLimitBytes ?? undefined,
    });
    saveState('between-attempts');
    return { planned, evidence, failure, startedMs: started.getTime(), values: planned.values, outputDir };
  }

  async function go(): Promise<RunResult> {
    const continued = earlier && continueAttempt(ports, preflight, earlier);
    for (const event of continued?.events ?? []) host.emit(event);
    let planned = continued?.planned ?? firstAttempt(preflight, request.changes);
    await watcher?.ready;
    for (;;) {
      // It came while there was no trainer to hand it to.
      if (signalled) return end({ whose: 'trainer', exitCode: undefined, signal: signalled });
      const attempted = await attempt(planned, attemptsBefore + made.length + 1);
      if (!('evidence' in attempted)) return { kind: 'unreadable', diagnostics: attempted };
      made.push(attempted);
      const { maxRetries } = request;
      const isFree = (): Promise<boolean> => waitUntilFree(host, sample, baseline);
      const next = await decideNext(ports, { preflight, made, before, maxRetries, signalled }, isFree);
      for (const event of next.events) host.emit(event);
      if (next.kind === 'end') {
        if (next.ending.whose === 'trainer' && next.ending.exitCode === 0) {
          const durationMs = ports.now().getTime() - began;
          host.emit({ kind: 'finished', attempts: attemptsBefore + made.length, durationMs });
        }
        return end(next.ending);
      }
      planned = next.planned;
    }
  }

  const close = async (): Promise<void> => {
    await watcher?.dismiss();
    neighbourhood.leave();
    stopListening();
  };
  return { go, close };
}

/** GPUs that are really there, also when another card is planned for. */
async function runningGpus(
  ports: Ports,
  { hardware, chosen, reading }: Preflight,
): Promise<Pick<Hardware, 'gpus' | 'source'>> {
  if (hardware.source !== 'planned') return { gpus: chosen?.gpus ?? hardware.gpus, source: hardware.source };
  const real = await detectHardware(ports, { environment: { ...ports.environment, ...reading.env } });
  return real.ok ? real.value : { gpus: [], source: 'none' };
}

const smallest = (sizes: readonly (number | undefined)[]): number | undefined => {
  const known = sizes.filter((size) => size !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
};

const firstAttempt = (preflight: Preflight, changes: readonly SpecChange[]): PlannedAttempt => {
  const plan = preflight.report.plan;
  const rewritten = plan?.verdict === 'rewrite' && changes.length > 0;
  const estimate: MemoryEstimate | undefined = rewritten ? plan.estimate : preflight.report.estimate;
  return { changes, estimate, values: rewritten ? plan.values : startingValues(preflight) };
};

/** What to do about silence; nothing where it was switched off. */
function stallOf(
  { stallMs: afterMs = defaultTimings.stallMs, stallAction }: RunRequest,
  tell: (stall: Stall, stops: boolean) => void,
): Pick<AttemptRequest, 'stall'> {
  const stop = stallAction === 'stop';
  return afterMs > 0 ? { stall: { afterMs, stop, onStall: (stall) => tell(stall, stop) } } : {};
}
