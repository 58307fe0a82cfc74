import { describe, expect, it } from 'vitest';
import { plannedGpu, withinAllocation } from '../../src/jobs/job-allocation.ts';

const asks = (more: object) => ({ nodes: 1, ...more });

describe('the card a job is planned for', () => {
  it.each<
    [
      named: string | undefined,
      allocation: object | undefined,
      environment: Record<string, string>,
      expected: string | undefined,
    ]
  >([
    ['rtx-3090', { gpusPerNode: 4 }, {}, 'rtx-3090:4'],
    ['rtx-3090:2', { gpusPerNode: 4 }, {}, 'rtx-3090:2'],
    ['rtx-3090', undefined, {}, 'rtx-3090'],
    [undefined, { gpusPerNode: 8, gpuType: 'l40s' }, {}, 'l40s:8'],
    [undefined, { gpusPerNode: 8, gpuType: 'a100' }, {}, undefined],
    [undefined, { gpusPerNode: 8, gpuType: 'big' }, {}, undefined],
    [undefined, { gpusPerNode: 8, gpuType: 'l40s' }, { SLURM_JOB_ID: '3' }, undefined],
    [undefined, { gpusPerNode: 8 }, {}, undefined],
  ])('--gpu %s, %j, %j', (named, allocation, environment, expected) => {
    expect(plannedGpu(named, allocation && asks(allocation), environment)).toBe(expected);
  });
});

describe('the RAM of a job', () => {
  const host = { totalBytes: 100, availableBytes: 80, limitedBy: 'MemAvailable', swapTotalBytes: 0, swapFreeBytes: 0 };
  const hardware = { gpus: [], source: 'none', notes: [], host, sharedMemory: undefined, disk: undefined } as const;
  const within = (hostRamBytes: number, environment: Record<string, string>) =>
    withinAllocation(hardware, asks({ hostRamBytes, hostRamPlace: '--mem at j.sbatch:2' }), environment).host;

  it('is what it asks for, on whatever machine that will be', () => {
    expect(within(500, {})).toMatchObject({ totalBytes: 500, availableBytes: 500, limitedBy: '--mem at j.sbatch:2' });
  });

  it('is the lesser of both inside the job', () => {
    expect(within(500, { SLURM_JOB_ID: '3' })).toEqual(host);
    expect(within(50, { SLURM_JOB_ID: '3' })).toMatchObject({ totalBytes: 100, availableBytes: 50 });
  });

  it('is left alone where the job says nothing', () => {
    expect(withinAllocation(hardware, asks({}), {})).toBe(hardware);
  });
});
