import type { LineWatcher } from '../diagnosis/index.ts';
import type { TreeStopper } from './stop-tree.ts';

export interface HangGuard {
  /** A fatal line has come. */
  readonly alarm: () => void;
  /** The tree was stopped for it. */
  readonly fired: () => boolean;
  readonly dispose: () => void;
}

export interface HangGuardOptions {
  readonly watcher: LineWatcher;
  readonly stopper: TreeStopper | undefined;
  /** Somebody outside has asked the run to end; then it is no longer ours to stop. */
  readonly ending: () => boolean;
  readonly graceMs: number;
  readonly stopGraceMs: number;
}

/**
 * A rank that is out of memory may leave the others waiting for it in a collective for half an hour. After its line the tree
 * has a while to end by itself; then it is stopped, unless training has gone on in the meantime.
 */
export function createHangGuard({ watcher, stopper, ending, graceMs, stopGraceMs }: HangGuardOptions): HangGuard {
  let timer: NodeJS.Timeout | undefined;
  let fired = false;
  return {
    alarm() {
      if (timer !== undefined || fired) return;
      timer = setTimeout(() => {
        timer = undefined;
        if (!stopper || stopper.stopping() || ending() || !watcher.fatal()) return;
        fired = true;
        // Nobody saves anything whole after that.
        void stopper.stop({ graceMs: stopGraceMs, insist: true });
      }, graceMs);
    },
    fired: () => fired,
    dispose: () => clearTimeout(timer),
  };
}
