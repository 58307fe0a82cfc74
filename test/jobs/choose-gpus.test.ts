import { expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import type { Gpu, Hardware } from '../../src/hardware/index.ts';
import { chooseGpu } from '../../src/jobs/choose-gpus.ts';
import type { Distributed } from '../../src/spec/index.ts';

const gpu = (index: number, free: number, total = 24): Gpu => ({
  index,
  uuid: `GPU-${index}`,
  name: 'RTX 4090',
  totalBytes: total * GiB,
  usedBytes: (total - free) * GiB,
  freeBytes: free * GiB,
  computeCapability: { major: 8, minor: 9 },
});
const machine = (...gpus: Gpu[]): Hardware => ({
  gpus,
  source: 'nvidia-smi',
  notes: ['a note of the driver'],
  host: undefined,
  sharedMemory: undefined,
  disk: undefined,
});
const ranks = (processesPerNode: number): Distributed => ({ nodes: 1, processesPerNode, strategy: 'ddp', offload: [] });

const chosen = (hardware: Hardware, distributed: Distributed) => {
  const choice = chooseGpu(hardware, distributed, 0.1);
  if (!('budget' in choice)) throw new Error('no card was chosen');
  return choice;
};

it('lets the card with the least free memory decide among those the ranks land on', () => {
  const hardware = machine(gpu(0, 20), gpu(1, 9), gpu(2, 3));
  expect(chosen(hardware, ranks(2)).gpu.index).toBe(1);
  expect(chosen(hardware, ranks(3)).gpu.index).toBe(2);
  expect(chosen(hardware, ranks(1)).gpu.index).toBe(0);
});

it('counts what others hold and the headroom off the card', () => {
  expect(chosen(machine(gpu(0, 20)), ranks(1)).budget).toEqual({
    capacityBytes: 24 * GiB,
    usedByOthersBytes: 4 * GiB,
    headroomBytes: Math.ceil(2.4 * GiB),
    usableBytes: 20 * GiB - Math.ceil(2.4 * GiB),
  });
});

it('says when other programs hold memory, and when there are fewer cards than ranks', () => {
  const codes = (hardware: Hardware, distributed: Distributed) =>
    chosen(hardware, distributed).diagnostics.map(({ code }) => code);
  expect(codes(machine(gpu(0, 20)), ranks(1))).toEqual(['gpu-in-use']);
  expect(codes(machine(gpu(0, 23.9)), ranks(4))).toEqual(['too-few-gpus']);
  expect(codes(machine(gpu(0, 23.9)), ranks(1))).toEqual([]);
});

it('passes over a card whose size the driver does not tell, and gives up when none is told', () => {
  const silent: Gpu = { ...gpu(0, 1), totalBytes: undefined, usedBytes: undefined, freeBytes: undefined };
  expect(chosen(machine(silent, gpu(1, 12)), ranks(2)).gpu.index).toBe(1);
  expect(chooseGpu(machine(silent), ranks(1), 0)).toMatchObject([{ code: 'no-gpu', notes: ['a note of the driver'] }]);
});
