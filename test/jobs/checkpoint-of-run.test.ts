import { expect, it } from 'vitest';
import type { FileInfo, Ports } from '../../src/core/index.ts';
import { savedByRun } from '../../src/jobs/checkpoint-of-run.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { completeCheckpoint as checkpoint } from '../support/complete-checkpoint.ts';
import { fakePorts } from '../support/fake-ports.ts';

/** A machine whose files were written at `modifiedMs`. */
function machine(files: Record<string, string | Uint8Array>, modifiedMs: number | ((path: string) => number)): Ports {
  const ports = fakePorts({ files });
  const info = (path: string): FileInfo | undefined => {
    const found = ports.files.info(path);
    return found && { ...found, modifiedMs: typeof modifiedMs === 'number' ? modifiedMs : modifiedMs(path) };
  };
  return { ...ports, files: { ...ports.files, info } };
}

const values = (perDeviceTrainBatchSize: number) => ({ perDeviceTrainBatchSize }) as PlanValues;

it('finds what this run wrote, with the settings of the attempt that wrote it', () => {
  const ports = machine({ ...checkpoint('/project/out', 20), ...checkpoint('/project/out', 10) }, 50_000);
  const attempts = [
    { startedMs: 40_000, values: values(8), outputDir: 'out' },
    { startedMs: 90_000, values: values(4), outputDir: 'out' },
  ];
  expect(savedByRun(ports, attempts).checkpoint).toMatchObject({
    path: '/project/out/checkpoint-20',
    step: 20,
    values: values(8),
    outputDir: 'out',
    skipped: [],
  });
});

it('leaves alone what lay in the output folder before the run', () => {
  const ports = machine(checkpoint('/project/out', 20), 1_000);
  expect(savedByRun(ports, [{ startedMs: 40_000, values: values(8), outputDir: 'out' }])).toEqual({
    checkpoint: undefined,
    anything: false,
  });
});

it('looks in the folder of the last attempt first, then in earlier ones', () => {
  const ports = machine({ ...checkpoint('/project/out', 30), ...checkpoint('/project/out-retry-1', 10) }, 95_000);
  const attempts = [
    { startedMs: 40_000, values: values(8), outputDir: 'out' },
    { startedMs: 90_000, values: values(4), outputDir: 'out-retry-1' },
  ];
  expect(savedByRun(ports, attempts).checkpoint?.path).toBe('/project/out-retry-1/checkpoint-10');
  const elsewhere = { startedMs: 90_000, values: values(4), outputDir: undefined };
  expect(savedByRun(ports, [attempts[0]!, elsewhere]).checkpoint?.path).toBe('/project/out/checkpoint-30');
});

it('looks past an earlier run’s checkpoint of a higher step', () => {
  const ports = machine({ ...checkpoint('/project/out', 900), ...checkpoint('/project/out', 20) }, (path) =>
    path.includes('checkpoint-900') ? 1_000 : 50_000,
  );
  const saved = savedByRun(ports, [{ startedMs: 40_000, values: values(8), outputDir: 'out' }]);
  expect([saved.checkpoint?.step, saved.anything]).toEqual([20, true]);
});

it('knows of a half-written checkpoint of its own, though it cannot go on from it', () => {
  const files = checkpoint('/project/out', 20);
  const ports = machine({ ...files, '/project/out/checkpoint-20/optimizer.pt': 'PK' }, 50_000);
  expect(savedByRun(ports, [{ startedMs: 40_000, values: values(8), outputDir: 'out' }])).toEqual({
    checkpoint: undefined,
    anything: true,
  });
});
