import { closeSync, openSync, writeSync } from 'node:fs';
import type { RunSample } from '../diagnosis/index.ts';
import { pauseAfterCards } from './card-pace.ts';
import type { ProcessStat } from './proc.ts';
import type { ProcessTree } from './process-tree.ts';
import { createRamWatch } from './ram-watch.ts';
import type { VolumeWatch } from './volume-watch.ts';

export interface Peaks {
  readonly ramBytes: number;
  readonly swapBytes: number;
  readonly vramBytes: number | undefined;
}

/**
 * Samples a tree's memory into `samples.jsonl` (`at_ms` since the start, `ram_bytes`, `ram_peak_bytes` and `swap_peak_bytes` so far,
 * `vram_bytes`, `processes`, `step`, `shm_free_bytes`, `disk_free_bytes`).
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
  /** Steps of training so far. */
  readonly step?: () => number;
  readonly onSample?: (sample: RunSample) => void;
  readonly volumes?: VolumeWatch;
}

/** Sizing RAM may take at most this part of the time; page tables of a 500 GB process take a while. */
const RAM_SHARE = 0.005;
/** And a look at all processes this part of a core: a large server has thousands. */
const LOOK_SHARE = 0.004;
/** Volumes fill up more slowly than memory. */
const SAMPLES_PER_VOLUME_LOOK = 5;
/** Samples without a look while the same processes live. */
const CALM_LOOKS = 2;
/**
 * Glances between looks, while memory moves: what a loader fills in that time is the most that goes unseen before a kill. A tree that
 * stands still is left more and more alone; to be woken costs more than the glance.
 */
const GLANCE_EVERY_MS = 100;
const CALM_EVERY_MS = 500;
const GLANCE_SHARE = 0.004;
/** Right after the start, so that what forks and leaves its parent at once is seen, and what grows at once as well. */
const EARLY_LOOKS_MS = [20, 60, 150, 300, 600];

/** What we have used of a core, milliseconds: on a busy machine a look takes longer, but costs no more. */
const spentMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

export function startSampler({
  tree,
  path,
  everyMs,
  sampleVram,
  onLook,
  step,
  onSample,
  volumes,
}: SamplerOptions): Sampler {
  const startedAt = Date.now();
  const ram = createRamWatch();
  let vramBytes: number | undefined;
  let stopped = false;
  let samples = 0;
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
  let pids: readonly number[] = [];
  let pauseMs = GLANCE_EVERY_MS;
  const lookAtTree = async (): Promise<void> => {
    const began = performance.now();
    if (!tree || began < nextLookAt) return;
    const spent = spentMs();
    const before = pids;
    pids = lookedAt(tree).map(({ pid }) => pid);
    const isCalm = pids.length === before.length && pids.every((pid, index) => pid === before[index]);
    if (!isCalm) pauseMs = GLANCE_EVERY_MS;
    const looked = performance.now();
    nextLookAt = began + Math.max((spentMs() - spent) / LOOK_SHARE, isCalm ? (CALM_LOOKS - 0.5) * everyMs : 0);
    if (looked < nextRamAt) return;
    await ram.look(pids);
    nextRamAt = looked + (performance.now() - looked) / RAM_SHARE;
  };
  let nextCardsAt = 0;
  /** As of the last look at the cards. */
  let heldVram: number | undefined;
  const lookAtCards = async (): Promise<number | undefined> => {
    const began = performance.now();
    if (!sampleVram || began < nextCardsAt) return undefined;
    heldVram = await sampleVram().catch(() => undefined);
    nextCardsAt = began + pauseAfterCards(performance.now() - began, Date.now() - startedAt);
    return heldVram;
  };
  const sample = async (): Promise<void> => {
    const [, vram] = await Promise.all([lookAtTree(), lookAtCards()]);
    if (vram !== undefined) vramBytes = Math.max(vramBytes ?? 0, vram);
    if (stopped) return;
    if (samples++ % SAMPLES_PER_VOLUME_LOOK === 0) volumes?.look();
    const atMs = Date.now() - startedAt;
    const steps = step?.() ?? 0;
    const ramBytes = tree && ram.nowBytes();
    onSample?.({ atMs, step: steps, vramBytes: heldVram, ramBytes, swapBytes: ram.swapBytes() });
    if (fd === undefined) return;
    const record = {
      at_ms: atMs,
      ram_bytes: ramBytes,
      ram_peak_bytes: tree && ram.peakBytes(),
      swap_peak_bytes: tree && ram.peakSwapBytes(),
      vram_bytes: vram,
      processes: tree && pids.length,
      step: steps === 0 ? undefined : steps,
      shm_free_bytes: volumes?.now().shm,
      disk_free_bytes: volumes?.now().disk,
    };
    try {
      writeSync(fd, `${JSON.stringify(record)}\n`);
    } catch {
      closeSync(fd);
      fd = undefined;
    }
  };
  let timer: NodeJS.Timeout;
  let current: Promise<void> | undefined;
  let nextSampleAt = performance.now() + Math.min(everyMs, 200);
  let nextGlanceAt = 0;
  /** One clock for both, so that a calm tree wakes us twice a second. */
  const tick = (): void => {
    const began = performance.now();
    if (began >= nextGlanceAt) {
      const spent = spentMs();
      pauseMs = ram.glance() ? GLANCE_EVERY_MS : Math.min(2 * pauseMs, CALM_EVERY_MS);
      nextGlanceAt = began + (spentMs() - spent) / GLANCE_SHARE;
    }
    if (current === undefined && began >= nextSampleAt - pauseMs / 4) {
      current = sample().then(() => {
        current = undefined;
        nextSampleAt = Math.max(began, performance.now() - everyMs / 2) + everyMs;
      });
    }
    timer = setTimeout(tick, Math.min(pauseMs, everyMs));
  };
  timer = setTimeout(tick, Math.min(everyMs, GLANCE_EVERY_MS));

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      for (const look of early) clearTimeout(look);
      // A hanging driver tool must not keep the attempt open.
      await Promise.race([current, new Promise((resolve) => setTimeout(resolve, 2000).unref())]);
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
      return { ramBytes: ram.peakBytes(), swapBytes: ram.peakSwapBytes(), vramBytes };
    },
  };
}
