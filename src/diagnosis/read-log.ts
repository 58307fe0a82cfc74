import type { Evidence } from './evidence.ts';
import { createLineWatcher } from './watch.ts';

/** Evidence from a log alone: its lines are known, how the run ended is not, and nothing was sampled. */
export function readLog(log: Uint8Array): Evidence {
  const watcher = createLineWatcher();
  watcher.push('stderr', log);
  watcher.end();
  return {
    exitCode: undefined,
    signal: undefined,
    startFailure: undefined,
    stoppedBecause: undefined,
    forwardedSignal: undefined,
    ...watcher.evidence(),
    cgroupOomKills: 0,
    peakRamBytes: 0,
    peakVramBytes: undefined,
  };
}
