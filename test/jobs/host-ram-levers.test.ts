import { expect, it } from 'vitest';
import { GiB, MiB, ok } from '../../src/core/index.ts';
import type { Evidence, Failure } from '../../src/diagnosis/index.ts';
import { hostRamEnded } from '../../src/jobs/host-ram-levers.ts';
import type { MemoryEstimate } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { plan } from '../memory/plans.ts';

const failure = { kind: 'cgroup', resource: 'host_ram', phase: 'load' } as Failure;
const evidence = { peakRamBytes: 11 * GiB, cgroupLimitBytes: 12 * GiB, hostRamBytes: 250 * GiB } as Evidence;
const host = {
  totalBytes: 250 * GiB,
  availableBytes: 11.5 * GiB,
  limitedBy: '/sys/fs/cgroup/job_9',
  swapTotalBytes: 0,
  swapFreeBytes: 0,
};
/** 1 GiB a rank, 300 MiB a worker, 4 GiB where anything is offloaded, pinning costs next to nothing. */
const estimate = ({ distributed, dataloaderNumWorkers, dataloaderPinMemory }: PlanValues) => {
  const ranks = distributed.processesPerNode;
  const neededBytes =
    ranks * (GiB + dataloaderNumWorkers * 300 * MiB + (dataloaderPinMemory ? MiB : 0)) +
    (distributed.offload.length > 0 ? 4 * GiB : 0);
  return ok({ ram: { peakBytes: 2 * neededBytes, neededBytes, terms: {} } } as unknown as MemoryEstimate);
};
const question = (changes: Partial<PlanValues> = {}) => ({ failure, evidence, values: plan(changes), estimate, host });

it('names what was seen, what there was, and the settings that save most first', () => {
  const event = hostRamEnded(
    question({
      dataloaderNumWorkers: 3,
      distributed: { nodes: 1, processesPerNode: 2, strategy: 'zero2', offload: ['optimizer'] },
    }),
  );
  expect(event).toMatchObject({
    kind: 'host-ram-out',
    phase: 'load',
    seenBytes: 11 * GiB,
    limitBytes: 12 * GiB,
    availableBytes: 11.5 * GiB,
    limitedBy: '/sys/fs/cgroup/job_9',
  });
  expect(event.levers.map(({ lever }) => lever)).toEqual(['offload', 'ranks', 'workers']);
  expect(event.levers[0]!.savesBytes).toBe(4 * GiB);
  expect(event.levers[2]).toMatchObject({ workers: 3, ranks: 2, savesBytes: 6 * 300 * MiB });
});

it('offers nothing that is as low as it goes', () => {
  expect(hostRamEnded(question()).levers).toEqual([]);
  const dp = { nodes: 1, processesPerNode: 4, strategy: 'dp', offload: [] } as const;
  expect(hostRamEnded(question({ distributed: dp })).levers).toEqual([]);
});

it('without an estimate it names the settings alone, without settings the facts alone', () => {
  const levers = hostRamEnded({ ...question({ dataloaderNumWorkers: 2 }), estimate: undefined }).levers;
  expect(levers.map(({ lever, savesBytes }) => [lever, savesBytes])).toEqual([
    ['workers', undefined],
    ['pin-memory', undefined],
  ]);
  const bare = hostRamEnded({
    ...question(),
    values: undefined,
    host: undefined,
    evidence: { ...evidence, cgroupLimitBytes: null },
  });
  expect(bare).toMatchObject({ levers: [], availableBytes: undefined, limitBytes: 250 * GiB });
});
