import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { classify } from '../../src/diagnosis/index.ts';
import { createVolumeWatch } from '../../src/supervisor/volume-watch.ts';
import { attempt } from '../diagnosis/texts.ts';
import { puppet } from './rig.ts';

const MiB = 2 ** 20;

it('knows what is free where a folder is going to be, and nothing of a place that is none', async () => {
  const watch = createVolumeWatch(join(import.meta.dirname, 'not', 'there', 'yet'), '/dev/null/shm');
  watch.look();
  await expect.poll(() => watch.now().disk).toBeGreaterThan(0);
  const { blocks, bsize } = statfsSync(import.meta.dirname);
  expect(watch.now().disk).toBeLessThanOrEqual(blocks * bsize);
  expect(watch.least()).toEqual({ disk: watch.now().disk });
});

it.skipIf(process.platform !== 'linux')('stands beside the other samples of a run, and in its evidence', async () => {
  const rig = puppet([['train', 'err', 1, 400]], { sampleEveryMs: 20 });
  const { leastFreeBytes } = await rig.evidence();
  expect(leastFreeBytes).toMatchObject({ shm: expect.any(Number), disk: expect.any(Number) });
});

it.each([
  [10 * MiB, { kind: 'shm', confidence: 'high', candidates: [] }],
  [900 * MiB, { kind: 'shm', confidence: 'medium', candidates: ['not_memory'] }],
])('a bus error with %i bytes of /dev/shm left', (shm, verdict) => {
  expect(
    classify({ ...attempt('', { exitCode: undefined, signal: 'SIGBUS' }), leastFreeBytes: { shm } }),
  ).toMatchObject(verdict);
});

it('a run that fails without a word of it may have filled its disk', () => {
  const silent = attempt('step 7', { exitCode: 1 });
  expect(classify({ ...silent, leastFreeBytes: { disk: 3 * MiB } })?.candidates).toContain('disk');
  expect(classify({ ...silent, leastFreeBytes: { disk: 900 * MiB } })?.candidates).not.toContain('disk');
  const crashed = attempt('RuntimeError: basic_ios::clear: iostream error', { exitCode: 1 });
  expect(classify({ ...crashed, leastFreeBytes: { disk: 3 * MiB } })).toMatchObject({
    kind: 'not_memory',
    candidates: ['disk'],
  });
});
