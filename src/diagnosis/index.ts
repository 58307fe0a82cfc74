export { classify } from './classify.ts';
export * from './evidence.ts';
export * from './failure.ts';
export { cleanControls } from './normalise.ts';
export { readLog } from './read-log.ts';
export { createLineWatcher, type FatalHit, type LineWatcher, type OutputStream, type WatchedOutput } from './watch.ts';
