import { closeSync, openSync, writeSync } from 'node:fs';
import type { ProcessStat } from './proc.ts';
import type { ProcessTree } from './process-tree.ts';
import { createRamWatch } from './ram-watch.ts';

export interface Peaks {
  readonly ramBytes: number;
  readonly swapBytes: number;
  readonly vramBytes: number | undefined;
}

/**
 * Samples a tree's memory into `samples.jsonl` (`at_ms` since the start, `ram_bytes`, `ram_peak_bytes` and `swap_peak_bytes` so far,
 * `vram_bytes`, `processes`).
 */
export interface Sampler {
  readonly stop: () => Promise<Peaks>;
}

export interface SamplerOptions {
  readonly tree: ProcessTree | undefined;
  readonly path: string;
  readonly everyMs: number;
  readonly sampleVram: (() => Promise<number | undefined>) | undefined;
  /** Told who lives in the tree, at every look. */
  readonly onLook?: (live: readonly ProcessStat[]) => void;
}

/** A look at RAM may take at most this part of the time; page tables of a 500 GB process take a while. */
const RAM_SHARE = 0.01;
/** And a look at all processes this part of a core: a large server has thousands. */
const LOOK_SHARE = 0.004;
/** Glances between looks: what a loader fills in that time is the most that goes unseen before a kill. */
const GLANCE_EVERY_MS = 100;
const GLANCE_SHARE = 0.004;
/** Right after the start, so that what forks and leaves its parent at once is seen, and what grows at once as well. */
const EARLY_LOOKS_MS = [20, 60, 150, 300, 600];

/** What we have used of a core, milliseconds: on a busy machine a look takes longer, but costs no more. */
const spentMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

export function startSampler({ tree, path, everyMs, sampleVram, onLook }: SamplerOptions): Sampler {
  const startedAt = Date.now();
  const ram = createRamWatch();
  let vramBytes: number | undefined;
  let stopped = false;
  let fd: number | undefined;
  try {
    fd = openSync(path, 'w');
  } catch {
    // Samples are a record, not a condition: the run goes on without the file.
  }
  const lookedAt = (of: ProcessTree): readonly ProcessStat[] => {
    const live = of.live();
    onLook?.(live);
    return live;
  };
  const early = EARLY_LOOKS_MS.filter((at) => at < everyMs).map((at) =>
    setTimeout(() => tree && void ram.look(lookedAt(tree).map((stat) => stat.pid)), at),
  );

  let nextLookAt = 0;
  let nextRamAt = 0;
  let processes: number | undefined;
  const lookAtTree = async (): Promise<number | undefined> => {
    const began = performance.now();
    if (!tree || began < nextLookAt) return undefined;
    const spent = spentMs();
    const live = lookedAt(tree);
    processes = live.length;
    nextLookAt = began + (spentMs() - spent) / LOOK_SHARE;
    const looked = performance.now();
    if (looked < nextRamAt) return undefined;
    const bytes = await ram.look(live.map((stat) => stat.pid));
    nextRamAt = looked + (performance.now() - looked) / RAM_SHARE;
    return bytes;
  };
  const sample = async (): Promise<void> => {
    const [ramBytes, vram] = await Promise.all([lookAtTree(), sampleVram?.().catch(() => undefined)]);
    if (vram !== undefined) vramBytes = Math.max(vramBytes ?? 0, vram);
    if (fd === undefined || stopped) return;
    const record = {
      at_ms: Date.now() - startedAt,
      ram_bytes: ramBytes,
      ram_peak_bytes: tree && ram.peakBytes(),
      swap_peak_bytes: tree && ram.peakSwapBytes(),
      vram_bytes: vram,
      processes,
    };
    try {
      writeSync(fd, `${JSON.stringify(record)}\n`);
    } catch {
      closeSync(fd);
      fd = undefined;
    }
  };
  let timer: NodeJS.Timeout;
  let current: Promise<void> = Promise.resolve();
  const schedule = (afterMs: number): void => {
    timer = setTimeout(() => {
      current = sample().then(() => {
        if (!stopped) schedule(everyMs);
      });
    }, afterMs);
  };
  schedule(Math.min(everyMs, 200));
  let nextGlanceAt = 0;
  const glances = setInterval(() => {
    const began = performance.now();
    if (began < nextGlanceAt) return;
    const spent = spentMs();
    ram.glance();
    nextGlanceAt = began + (spentMs() - spent) / GLANCE_SHARE;
  }, GLANCE_EVERY_MS);

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      clearInterval(glances);
      for (const look of early) clearTimeout(look);
      // A hanging driver tool must not keep the attempt open.
      await Promise.race([current, new Promise((resolve) => setTimeout(resolve, 2000).unref())]);
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
      return { ramBytes: ram.peakBytes(), swapBytes: ram.peakSwapBytes(), vramBytes };
    },
  };
}
