import { expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import { waitUntilFree } from '../../src/jobs/wait-until-free.ts';
import type { RunEvent } from '../../src/report/index.ts';

function watched(readings: readonly (number | undefined)[]) {
  const events: RunEvent[] = [];
  let reading = 0;
  const sample = async () => readings[Math.min(reading++, readings.length - 1)];
  return {
    host: { emit: (event: RunEvent) => void events.push(event) },
    sample,
    kinds: () => events.map(({ kind }) => kind),
  };
}

it('goes on at once when the memory is back, or when there is no driver to ask', async () => {
  const back = watched([1.2 * GiB]);
  expect(await waitUntilFree(back.host, back.sample, GiB)).toBe(true);
  expect(await waitUntilFree(back.host, undefined, undefined)).toBe(true);
  expect(back.kinds()).toEqual([]);
});

it('waits for a driver that is slow to free it, and says so', async () => {
  const slow = watched([20 * GiB, 20 * GiB, 9 * GiB, GiB]);
  expect(await waitUntilFree(slow.host, slow.sample, GiB)).toBe(true);
  expect(slow.kinds()).toEqual(['gpu-memory-waiting', 'gpu-memory-freed']);
});

it('does not go on around memory that stays held', async () => {
  const stuck = watched([20 * GiB]);
  expect(await waitUntilFree(stuck.host, stuck.sample, GiB, 600)).toBe(false);
  expect(stuck.kinds()).toEqual(['gpu-memory-waiting', 'gpu-memory-stuck']);
});
