import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readProcessMemory } from '../../src/supervisor/memory-use.ts';
import { createRamWatch } from '../../src/supervisor/ram-watch.ts';

const MB = 1024 ** 2;
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'snug-proc-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Megabytes of a process as /proc shows them. */
function show(pid: number, sizes: { pss: number; rss: number; anon: number; high: number }): void {
  const folder = join(root, 'proc', String(pid));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'smaps_rollup'), `Rss: ${sizes.rss * 1024} kB\nPss:    ${sizes.pss * 1024} kB\n`);
  const line = (name: string, megabytes: number): string => `${name}:\t  ${megabytes * 1024} kB\n`;
  writeFileSync(
    join(folder, 'status'),
    `Name:\tVmRSS: 1 kB\n${line('VmHWM', sizes.high)}${line('VmRSS', sizes.rss)}${line('RssAnon', sizes.anon)}`,
  );
}
const gone = (pid: number): void => rmSync(join(root, 'proc', String(pid)), { recursive: true });

describe('between two looks', () => {
  it('growth counts, and stays counted when the process is gone', async () => {
    const watch = createRamWatch(root);
    show(7, { pss: 300, rss: 340, anon: 280, high: 340 });
    expect(await watch.look([7])).toBe(300 * MB);
    show(7, { pss: 300, rss: 1340, anon: 1280, high: 1340 });
    watch.glance();
    gone(7);
    expect(await watch.look([7])).toBe(0);
    expect(watch.peakBytes()).toBe(1300 * MB);
  });

  it('a tree that stands still is not sized again, one that moves or has others in it is', async () => {
    const watch = createRamWatch(root);
    const sizes = { pss: 300, rss: 340, anon: 280, high: 340 };
    show(7, sizes);
    await watch.look([7]);
    show(7, { ...sizes, pss: 310 });
    expect(await watch.look([7])).toBe(300 * MB);
    show(7, { ...sizes, pss: 310, rss: 350 });
    expect(await watch.look([7])).toBe(310 * MB);
    show(7, { ...sizes, pss: 290, rss: 350 });
    show(8, sizes);
    expect(await watch.look([7, 8])).toBe(590 * MB);
    gone(7);
    expect(await watch.look([8])).toBe(300 * MB);
  });

  it('says whether it has moved: then it is worth looking again soon', async () => {
    const watch = createRamWatch(root);
    show(7, { pss: 300, rss: 340, anon: 280, high: 340 });
    await watch.look([7]);
    expect(watch.glance()).toBe(false);
    show(7, { pss: 300, rss: 342, anon: 282, high: 342 });
    expect(watch.glance()).toBe(false);
    show(7, { pss: 300, rss: 402, anon: 342, high: 402 });
    expect(watch.glance()).toBe(true);
    expect(watch.glance()).toBe(false);
    expect(watch.nowBytes()).toBe(362 * MB);
    gone(7);
    expect(watch.glance()).toBe(true);
  });

  it('a height that has passed counts once', async () => {
    const watch = createRamWatch(root);
    show(7, { pss: 300, rss: 340, anon: 280, high: 340 });
    await watch.look([7]);
    show(7, { pss: 300, rss: 350, anon: 290, high: 900 });
    watch.glance();
    expect(watch.peakBytes()).toBe((300 + 10 + 550) * MB);
    show(8, { pss: 400, rss: 400, anon: 390, high: 400 });
    await watch.look([7, 8]);
    expect(watch.peakBytes()).toBe(860 * MB);
  });

  it('knows the most that was in swap at one moment, over all processes', async () => {
    const watch = createRamWatch(root);
    for (const pid of [7, 8]) show(pid, { pss: 20, rss: 20, anon: 20, high: 20 });
    await watch.look([7, 8]);
    const put = (pid: number, swap: number): void =>
      writeFileSync(
        join(root, 'proc', `${pid}`, 'status'),
        `VmRSS:\t  ${20 * 1024} kB\nVmSwap:\t  ${swap * 1024} kB\n`,
      );
    put(7, 5);
    put(8, 6);
    watch.glance();
    put(7, 8);
    put(8, 0);
    watch.glance();
    expect(watch.peakSwapBytes()).toBe(11 * MB);
  });

  it('pages of files that several ranks map do not count once a rank', async () => {
    const watch = createRamWatch(root);
    for (const pid of [7, 8]) show(pid, { pss: 200, rss: 250, anon: 150, high: 250 });
    await watch.look([7, 8]);
    for (const pid of [7, 8]) show(pid, { pss: 700, rss: 1250, anon: 150, high: 1250 });
    watch.glance();
    expect(watch.peakBytes()).toBe(400 * MB);
    await watch.look([7, 8]);
    expect(watch.peakBytes()).toBe(1400 * MB);
  });
});

it('reads what the kernel counts along, on old kernels as well', () => {
  show(9, { pss: 1, rss: 40, anon: 30, high: 50 });
  expect(readProcessMemory(9, root)).toEqual({
    residentBytes: 40 * MB,
    anonymousBytes: 30 * MB,
    highBytes: 50 * MB,
    swapBytes: 0,
  });
  writeFileSync(join(root, 'proc', '9', 'status'), 'Name:\tx\nVmRSS:\t  2048 kB\nVmSwap:\t  7168 kB\n');
  expect(readProcessMemory(9, root)).toEqual({
    residentBytes: 2 * MB,
    anonymousBytes: 2 * MB,
    highBytes: 2 * MB,
    swapBytes: 7 * MB,
  });
  writeFileSync(join(root, 'proc', '9', 'status'), 'Name:\tx\nState:\tZ (zombie)\n');
  expect(readProcessMemory(9, root)).toBeUndefined();
  expect(readProcessMemory(10, root)).toBeUndefined();
});
