export { type Checkpoint, newestCompleteCheckpoint, type SkippedCheckpoint } from './checkpoints.ts';
export * from './contract.ts';
export { type GpuMemoryWait, waitForGpuMemory } from './gpu-memory.ts';
export { startAttempt } from './start-attempt.ts';
export { defaultTimings } from './timings.ts';
