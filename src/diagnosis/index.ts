export { type Arithmetic, type FigureFault, workOut } from './arithmetic.ts';
export { classify } from './classify.ts';
export * from './evidence.ts';
export * from './failure.ts';
export { type EvidencePart, joinEvidence } from './join-evidence.ts';
export { countNewlines } from './log/byte-scan.ts';
export { createLogReader, type LogReader, type LogReading } from './log/read-pieces.ts';
export { scanForHints, shapeAt } from './log/skim.ts';
export { growthOf, type MemoryGrowth, type RunSample } from './memory-trend.ts';
export { cleanControls } from './normalise.ts';
export { readLog } from './read-log.ts';
export { type LookId, looksOf, type RemedyId, remediesOf } from './remedies.ts';
export { type Slowdown, slowdownOf } from './slowdown.ts';
export { type Verdict, verdictOf } from './verdict.ts';
export {
  createLineWatcher,
  type FatalHit,
  type LineWatcher,
  type OutputStream,
  type SkippedTo,
  type WatchedOutput,
} from './watch.ts';
