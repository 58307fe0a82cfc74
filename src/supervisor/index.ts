export { type Checkpoint, newestCompleteCheckpoint, type SkippedCheckpoint } from './checkpoints.ts';
export * from './contract.ts';
export { type GpuMemoryWait, waitForGpuMemory } from './gpu-memory.ts';
export { isProcessAlive, type ProcessId, processIdOf } from './proc.ts';
export type { Stall } from './stall-watch.ts';
export { startAttempt } from './start-attempt.ts';
export { defaultTimings } from './timings.ts';
export type { TrendListeners, Trends } from './trend-watch.ts';
export { startWatcher, type Watcher } from './watcher/start-watcher.ts';
