import { closeSync, openSync, writeSync } from 'node:fs';
import { readRam } from './memory-use.ts';
import type { ProcessTree } from './process-tree.ts';

export interface Peaks {
  readonly ramBytes: number;
  readonly vramBytes: number | undefined;
}

/** Samples a tree's memory into `samples.jsonl` (`at_ms` since the start, `ram_bytes`, `vram_bytes`, `processes`). */
export interface Sampler {
  readonly stop: () => Promise<Peaks>;
}

export interface SamplerOptions {
  readonly tree: ProcessTree | undefined;
  readonly path: string;
  readonly everyMs: number;
  readonly sampleVram: (() => Promise<number | undefined>) | undefined;
}

/** A look at RAM may take at most this part of the time; page tables of a 500 GB process take a while. */
const RAM_SHARE = 0.05;
/** And a look at all processes this part: a large server has thousands. */
const LOOK_SHARE = 0.02;
/** Right after the start, so that what forks and leaves its parent at once is seen. */
const EARLY_LOOKS_MS = [20, 60, 150, 300, 600];

export function startSampler({ tree, path, everyMs, sampleVram }: SamplerOptions): Sampler {
  const startedAt = Date.now();
  let ramBytes = 0;
  let vramBytes: number | undefined;
  let stopped = false;
  let fd: number | undefined;
  try {
    fd = openSync(path, 'w');
  } catch {
    // Samples are a record, not a condition: the run goes on without the file.
  }
  const early = EARLY_LOOKS_MS.filter((at) => at < everyMs).map((at) => setTimeout(() => tree?.refresh(), at));

  let nextLookAt = 0;
  let nextRamAt = 0;
  let processes: number | undefined;
  const lookAtTree = async (): Promise<number | undefined> => {
    const began = performance.now();
    if (!tree || began < nextLookAt) return undefined;
    const live = tree.live();
    processes = live.length;
    const looked = performance.now();
    nextLookAt = began + (looked - began) / LOOK_SHARE;
    if (looked < nextRamAt) return undefined;
    const sizes = await Promise.all(live.map((stat) => readRam(stat.pid)));
    nextRamAt = looked + (performance.now() - looked) / RAM_SHARE;
    return sizes.reduce((sum, size) => sum + size, 0);
  };
  const sample = async (): Promise<void> => {
    const [ram, vram] = await Promise.all([lookAtTree(), sampleVram?.().catch(() => undefined)]);
    if (ram !== undefined) ramBytes = Math.max(ramBytes, ram);
    if (vram !== undefined) vramBytes = Math.max(vramBytes ?? 0, vram);
    if (fd === undefined || stopped) return;
    const record = { at_ms: Date.now() - startedAt, ram_bytes: ram, vram_bytes: vram, processes };
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

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      for (const look of early) clearTimeout(look);
      // A hanging driver tool must not keep the attempt open.
      await Promise.race([current, new Promise((resolve) => setTimeout(resolve, 2000).unref())]);
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
      return { ramBytes, vramBytes };
    },
  };
}
