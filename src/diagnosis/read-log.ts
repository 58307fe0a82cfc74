import type { Evidence } from './evidence.ts';
import { createLineWatcher, type WatchedOutput } from './watch.ts';

/** Evidence from a log's lines: how the run ended is not known, and nothing was sampled. */
export const evidenceOf = (watched: WatchedOutput): Evidence => ({
  exitCode: undefined,
  signal: undefined,
  startFailure: undefined,
  stoppedBecause: undefined,
  forwardedSignal: undefined,
  ...watched,
  cgroupOomKills: 0,
  peakRamBytes: 0,
  peakVramBytes: undefined,
});

/** Evidence from a log alone, every line of it looked at. */
export function readLog(log: Uint8Array): Evidence {
  const watcher = createLineWatcher();
  watcher.push('stderr', log);
  watcher.end();
  return evidenceOf(watcher.evidence());
}
