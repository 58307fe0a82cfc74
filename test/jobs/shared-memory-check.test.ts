import { expect, it } from 'vitest';
import { MiB } from '../../src/core/index.ts';
import type { Hardware } from '../../src/hardware/index.ts';
import { sharedMemoryWarnings } from '../../src/jobs/shared-memory-check.ts';
import { toyValues } from '../planner/toy.ts';

const machine = (freeMib: number, source: Hardware['source'] = 'nvidia-smi'): Hardware => ({
  gpus: [],
  source,
  notes: [],
  host: undefined,
  sharedMemory: { freeBytes: freeMib * MiB, totalBytes: 64 * MiB },
  disk: undefined,
});
// Two batches ahead a worker, three columns of eight bytes a token: 3 MiB a worker and rank.
const values = toyValues({ dataloaderNumWorkers: 8, perDeviceTrainBatchSize: 32, maxLength: 2048 });

it('holds the batches of all workers and ranks against what is free', () => {
  expect(sharedMemoryWarnings(machine(48), values)).toEqual([]);
  const [found] = sharedMemoryWarnings(machine(47), values);
  expect(found).toMatchObject({ code: 'shm-short', severity: 'warning', location: '/dev/shm' });
  expect(found!.message).toContain('48 MiB of batches in /dev/shm, and 47 MiB are free');
  expect(found!.help).toContain('--shm-size');
});

it('says nothing without workers, nor of a machine that is only planned', () => {
  expect(sharedMemoryWarnings(machine(1), { ...values, dataloaderNumWorkers: 0 })).toEqual([]);
  expect(sharedMemoryWarnings(machine(1, 'planned'), values)).toEqual([]);
});
