import { setTimeout as sleep } from 'node:timers/promises';
import { type ProcessTree, signalProcess } from './process-tree.ts';
import { defaultTimings } from './timings.ts';

export interface StopOptions {
  /** From SIGTERM to SIGKILL, milliseconds. */
  readonly graceMs: number;
  /** The kill waits for nothing, not even a save. */
  readonly insist?: boolean;
  readonly passOnMs?: number;
  readonly killWaitMs?: number;
}

export interface TreeStopperOptions {
  /** Asked when the grace is over: while it says yes (a save is under way), the kill waits, up to `defaultTimings.saveLimitMs`. */
  readonly holdOn?: (() => boolean) | undefined;
}

/** Ends a process tree. */
export interface TreeStopper {
  /** Asks, waits, kills, waits. Called again it may shorten the grace; every call gets the same end. */
  readonly stop: (options: StopOptions) => Promise<readonly number[]>;
  readonly stopping: () => boolean;
}

/**
 * SIGTERM for the leader alone first: torchrun and the like hand it on to their workers, which would otherwise get it twice in
 * the middle of their cleanup. Then for whatever it did not reach, then SIGKILL, children first, so that no launcher has time
 * to start a dead rank again. Resolves with the pids that are still there, normally none.
 */
export function createTreeStopper(tree: ProcessTree, leader: number, { holdOn }: TreeStopperOptions = {}): TreeStopper {
  let insisted = false;
  let holdUntil = Number.POSITIVE_INFINITY;
  let deadline = Number.POSITIVE_INFINITY;
  let running: Promise<readonly number[]> | undefined;

  const run = async (passOnAt: number, killWaitMs: number): Promise<readonly number[]> => {
    const asked = new Set<number>();
    const ask = (all: boolean): void => {
      for (const stat of tree.live()) {
        if (asked.has(stat.pid) || (!all && stat.pid !== leader)) continue;
        asked.add(stat.pid);
        signalProcess(stat, 'SIGTERM');
        // A stopped process (Ctrl-Z, a debugger) would not hear it.
        if (stat.state === 'T') signalProcess(stat, 'SIGCONT');
      }
    };
    ask(false);
    // Not after somebody insisted on the end.
    const mayWait = (): boolean => {
      if (insisted || !holdOn || Date.now() >= holdUntil || !holdOn()) return false;
      deadline = Math.min(Date.now() + defaultTimings.saveLookMs, holdUntil);
      return true;
    };
    for (let pause = 10; Date.now() < deadline || mayWait(); pause = Math.min(pause * 1.5, 200)) {
      const live = tree.live();
      if (live.length === 0) return [];
      // Without its launcher nobody hands the signal on any more.
      if (Date.now() >= passOnAt || !live.some((stat) => stat.pid === leader)) ask(true);
      await sleep(Math.max(1, Math.min(pause, deadline - Date.now())));
    }
    const giveUpAt = Date.now() + killWaitMs;
    for (let pause = 5; ; pause = Math.min(pause * 2, 200)) {
      const live = tree.live();
      if (live.length === 0) return [];
      if (Date.now() >= giveUpAt) return live.map((stat) => stat.pid);
      for (const stat of [...live].reverse()) signalProcess(stat, 'SIGKILL');
      await sleep(pause);
    }
  };

  return {
    stop(options) {
      const now = Date.now();
      deadline = Math.min(deadline, now + options.graceMs);
      if (options.insist || options.graceMs === 0) insisted = true;
      if (!running) holdUntil = deadline + defaultTimings.saveLimitMs;
      const passOnMs = Math.min(options.passOnMs ?? defaultTimings.passOnMs, options.graceMs / 3);
      running ??= run(now + passOnMs, options.killWaitMs ?? defaultTimings.killWaitMs);
      return running;
    },
    stopping: () => running !== undefined,
  };
}
