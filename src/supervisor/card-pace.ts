/** Part of the time for which the driver's tool may run. It starts a process each time and spends most of that on a core. */
const SHARE = 0.005;
/** At first every sample counts: most of what a run will ever hold it takes in its first steps. */
const CLOSELY_MS = 60_000;
/** An allocator that caches gives little back: what it holds is still there after so long. */
const MOST_MS = 10_000;

/** How long to leave the cards alone after a look that took `tookMs`, `runMs` after the start. */
export const pauseAfterCards = (tookMs: number, runMs: number): number =>
  runMs < CLOSELY_MS ? 0 : Math.min(tookMs / SHARE, MOST_MS);
