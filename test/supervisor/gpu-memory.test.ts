import { expect, it } from 'vitest';
import { GiB, MiB } from '../../src/core/index.ts';
import { waitForGpuMemory } from '../../src/supervisor/index.ts';

const readings = (...values: (number | undefined)[]) => {
  let at = 0;
  return async () => values[Math.min(at++, values.length - 1)];
};
const quick = { timeoutMs: 60, toleranceBytes: 100 * MiB, everyMs: 5 };

it('waits until the memory is back at what it was, give or take', async () => {
  expect(await waitForGpuMemory(readings(20 * GiB, 9 * GiB, GiB + 90 * MiB), GiB, quick)).toEqual({
    freed: true,
    lastBytes: GiB + 90 * MiB,
  });
});

it('says what is still held when the time is over', async () => {
  expect(await waitForGpuMemory(readings(20 * GiB, 9 * GiB), GiB, quick)).toEqual({ freed: false, lastBytes: 9 * GiB });
});

it('waits for nothing without a driver', async () => {
  expect(await waitForGpuMemory(readings(undefined), GiB, quick)).toEqual({ freed: true });
  expect(await waitForGpuMemory(() => Promise.reject(new Error('nvidia-smi went away')), GiB, quick)).toEqual({
    freed: true,
  });
});
