import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { createLineWatcher, type Evidence } from '../diagnosis/index.ts';
import type { StartAttempt } from './contract.ts';
import { createHangGuard } from './hang-guard.ts';
import { type OomCounters, readOomCounters } from './memory-use.ts';
import { handOn } from './output.ts';
import { hasProc } from './proc.ts';
import { createProcessTree, signalProcess } from './process-tree.ts';
import { startSampler } from './sampler.ts';
import { createSaveWatch } from './save-watch.ts';
import { settle } from './settle.ts';
import { createSignalRelay } from './signals.ts';
import { createStallWatch } from './stall-watch.ts';
import { startChild } from './start-child.ts';
import { createTreeStopper } from './stop-tree.ts';
import { stopWithTreeKill } from './stop-without-proc.ts';
import { defaultTimings } from './timings.ts';
import { createTrendWatch } from './trend-watch.ts';
import { createVolumeWatch } from './volume-watch.ts';
import { MARK_VARIABLE } from './watcher/messages.ts';

/** Beside the attempt's log, when snug was killed. */
const WATCHER_REPORT = 'watcher.json';

/** Starts one attempt, hands its output on, watches it, and gives evidence once nothing of it is left. */
export const startAttempt: StartAttempt = (request) => {
  const { stopGraceMs, watcher: guardian } = request;
  const before = readOomCounters();
  const mark = guardian?.expect({
    graceMs: stopGraceMs,
    logPath: request.logPath,
    outputDir: request.outputDir,
    reportPath: join(dirname(request.logPath), WATCHER_REPORT),
  });
  const child = startChild(
    mark === undefined ? request : { ...request, env: { ...request.env, [MARK_VARIABLE]: mark } },
  );
  guardian?.follow(child);
  const tree = child.pid !== undefined && hasProc() ? createProcessTree(child.pid, child.ownSession) : undefined;
  const holdOn = request.outputDir === undefined ? undefined : createSaveWatch(request.outputDir);
  const stopper = tree ? createTreeStopper(tree, child.pid!, { holdOn }) : child.pid && stopWithTreeKill(child.pid);
  const watcher = createLineWatcher();
  const relay = createSignalRelay({
    child,
    stopTree: () => stopper && void stopper.stop({ graceMs: stopGraceMs }),
    killTree: () => stopper && void stopper.stop({ graceMs: 0 }),
    toTree: (name) => {
      for (const stat of tree?.live() ?? []) signalProcess(stat, name);
    },
  });
  const guard = createHangGuard({
    watcher,
    stopper: stopper || undefined,
    ending: relay.ending,
    graceMs: request.fatalLineGraceMs,
    stopGraceMs: Math.min(stopGraceMs, defaultTimings.afterOomGraceMs),
  });
  let stalled = false;
  const stall =
    request.stall &&
    createStallWatch({
      ...request.stall,
      tree,
      onStall: (what) => {
        request.stall!.onStall(what);
        if (!request.stall!.stop || !stopper || stopper.stopping() || relay.ending()) return;
        stalled = true;
        void stopper.stop({ graceMs: stopGraceMs });
      },
    });
  const output = handOn(request, child, watcher, { onFatal: guard.alarm, onOutput: stall?.alive });
  const trends = createTrendWatch({ ...request.trends, plannedSteps: watcher.plannedSteps });
  const volumes = createVolumeWatch(request.outputDir ?? request.cwd);
  const sampler = startSampler({
    volumes,
    tree,
    path: request.samplesPath,
    everyMs: request.sampleEveryMs,
    sampleVram: child.pid === undefined ? undefined : request.sampleVram,
    onLook: (live) => guardian?.know(live),
    step: watcher.step,
    onSample: trends.take,
  });

  const ended = async (): Promise<Evidence> => {
    const exit = await child.exited;
    const drainMs = request.drainMs ?? defaultTimings.drainMs;
    const survivors = await settle({ tree, stopper: stopper || undefined, output, drainMs, stopGraceMs });
    output.allRead();
    watcher.end();
    guard.dispose();
    stall?.dispose();
    const peaks = await sampler.stop();
    await output.close();
    if (survivors.length === 0) guardian?.release();
    return {
      ...exit,
      stoppedBecause: guard.fired()
        ? 'fatal-line'
        : stalled
          ? 'stall'
          : relay.ending()
            ? 'forwarded-signal'
            : undefined,
      forwardedSignal: relay.forwarded(),
      ...watcher.evidence(),
      peakRamBytes: peaks.ramBytes,
      peakSwapBytes: peaks.swapBytes,
      peakVramBytes: peaks.vramBytes,
      hostRamBytes: totalmem(),
      ...trends.trends(),
      leastFreeBytes: volumes.least(),
      ...risen(before, readOomCounters()),
      ...(tree ? { treePids: tree.seen() } : {}),
      ...(request.expandableSegments === undefined ? {} : { expandableSegments: request.expandableSegments }),
      ...(survivors.length > 0 ? { survivors } : {}),
      unfinishedLines: output.unfinishedLines(),
    };
  };
  return { pid: child.pid, signal: relay.relay, interrupt: output.interrupt, ended: ended() };
};

function risen(
  before: OomCounters,
  after: OomCounters,
): Pick<Evidence, 'cgroupOomKills' | 'cgroupLimitBytes' | 'hostOomKills'> {
  const { cgroupLimitBytes: limit, hostKills } = after;
  return {
    cgroupOomKills: Math.max(0, after.cgroupKills - before.cgroupKills),
    ...(limit === undefined ? {} : { cgroupLimitBytes: limit }),
    ...(hostKills === undefined || before.hostKills === undefined
      ? {}
      : { hostOomKills: Math.max(0, hostKills - before.hostKills) }),
  };
}
