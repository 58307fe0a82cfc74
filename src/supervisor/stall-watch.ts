import { setTimeout as sleep } from 'node:timers/promises';
import { readStat } from './proc.ts';
import type { ProcessTree } from './process-tree.ts';

/** A run that says nothing any more. */
export interface Stall {
  /** How long there was no output, milliseconds. */
  readonly quietMs: number;
  /** Cores that the tree keeps busy; undefined: not known. A hang in a collective may spin or sleep. */
  readonly busyCores: number | undefined;
  readonly processes: number | undefined;
}

export interface StallWatch {
  /** Output has come. */
  readonly alive: () => void;
  readonly dispose: () => void;
}

export interface StallWatchOptions {
  readonly afterMs: number;
  readonly tree: ProcessTree | undefined;
  readonly onStall: (stall: Stall) => void;
}

const TICKS_PER_SECOND = 100;
const MEASURED_MS = 1000;
/** Between two looks whether there was output. */
const MOST_BETWEEN_MS = 5000;
/** A gap between two looks longer than this is our own sleep (Ctrl-Z, a suspended machine), not the trainer's silence. */
const LOOKS_MISSED = 3;

async function busyCores(tree: ProcessTree | undefined): Promise<Pick<Stall, 'busyCores' | 'processes'>> {
  if (!tree) return { busyCores: undefined, processes: undefined };
  const pids = tree.live().map(({ pid }) => pid);
  const ticks = (): number => pids.reduce((sum, pid) => sum + (readStat(pid)?.cpuTicks ?? 0), 0);
  const before = ticks();
  const began = performance.now();
  await sleep(MEASURED_MS);
  const seconds = (performance.now() - began) / 1000;
  return { busyCores: Math.max(0, ticks() - before) / TICKS_PER_SECOND / seconds, processes: pids.length };
}

/** Tells once for every silence that lasts `afterMs`. */
export function createStallWatch({ afterMs, tree, onStall }: StallWatchOptions): StallWatch {
  const everyMs = Math.max(10, Math.min(MOST_BETWEEN_MS, afterMs / 10));
  let quietMs = 0;
  let told = false;
  let disposed = false;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    const passed = now - last;
    last = now;
    if (passed < everyMs * LOOKS_MISSED) quietMs += passed;
    else quietMs += everyMs;
    if (quietMs < afterMs || told) return;
    told = true;
    void busyCores(tree).then((busy) => {
      if (!disposed && told) onStall({ quietMs: Math.round(quietMs), ...busy });
    });
  }, everyMs);
  return {
    alive() {
      quietMs = 0;
      told = false;
    },
    dispose() {
      disposed = true;
      clearInterval(timer);
    },
  };
}
