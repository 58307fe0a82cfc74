import { setTimeout as sleep } from 'node:timers/promises';
import type { HandedOn } from './output.ts';
import type { ProcessTree } from './process-tree.ts';
import type { TreeStopper } from './stop-tree.ts';

/** How long pipes may stay open once nothing of the tree is left: then somebody we do not know holds them. */
const STRANGERS_PIPE_MS = 1000;

export interface SettleOptions {
  readonly tree: ProcessTree | undefined;
  readonly stopper: TreeStopper | undefined;
  readonly output: HandedOn;
  readonly drainMs: number;
  readonly stopGraceMs: number;
}

/**
 * After the direct child has ended: lets what outlives it finish and empty its pipes, then stops it. An end of the pipes may
 * never come (a grandchild keeps stderr open), so pids are watched, and the pipes only until a deadline. Resolves with the
 * pids that even SIGKILL has not ended.
 */
export async function settle(options: SettleOptions): Promise<readonly number[]> {
  const { tree, stopper, output, drainMs, stopGraceMs } = options;
  const isLive = (): boolean => tree !== undefined && tree.live().length > 0;
  const isQuiet = (): boolean => {
    if (stopper?.stopping()) return true;
    if (isLive()) return false;
    if (output.finished()) return true;
    // The pipes end a moment after the last process; if they do not, somebody holds them.
    tree?.findPipeHolders();
    return !isLive();
  };
  const waitUntil = async (done: () => boolean, withinMs: number): Promise<boolean> => {
    const giveUpAt = Date.now() + withinMs;
    for (let pause = 1; ; pause = Math.min(pause * 2, 100)) {
      if (done()) return true;
      if (Date.now() >= giveUpAt) return false;
      await sleep(pause);
    }
  };
  let survivors: readonly number[] = [];
  // Workers in sessions of their own, started between two looks, have lost the parent by which they would be found; their pipes tell.
  tree?.findPipeHolders();
  const endedByItself = await waitUntil(isQuiet, drainMs);
  if (stopper && (!endedByItself || stopper.stopping())) survivors = await stopper.stop({ graceMs: stopGraceMs });
  if (!(await waitUntil(output.finished, STRANGERS_PIPE_MS))) output.cutOff();
  return survivors;
}
