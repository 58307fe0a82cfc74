import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const SCRIPT = join(ROOT, 'test', 'fixtures', 'e2e', 'loader.py');

describe('a trainer whose data loader dies', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
  });
  afterEach(() => {
    const left = sandbox.leftProcesses();
    sandbox.remove();
    expect(left).toEqual([]);
  });

  const launch = (death: string, workers: number): void => {
    sandbox.write(
      'snug.yaml',
      `command: >-
  python3 ${SCRIPT} --workers {dataloader_num_workers} --pin {dataloader_pin_memory} --batch {per_device_train_batch_size}
  --death ${death} --output_dir {output_dir}
resume: "--resume {checkpoint}"
output_dir: results
per_device_train_batch_size: 3
dataloader_num_workers: ${workers}
`,
    );
  };

  it.each([
    ['killed', 'dataloader_ram'],
    ['bus', 'shm'],
  ])('by a worker (%s): once more from the checkpoint, without workers, the batch untouched', async (death, kind) => {
    launch(death, 6);
    const run = await sandbox.run(['run']);
    expect(run.exitCode).toBe(0);
    const { attempts } = sandbox.onlyRun();
    expect(attempts.map(({ log }) => /workers=\S+ pin=\S+ from step \d+/.exec(log)?.[0])).toEqual([
      'workers=6 pin=true from step 1',
      'workers=0 pin=true from step 3',
    ]);
    expect(attempts[0]!.outcome).toMatchObject({ failure: { kind } });
    expect(run.stderr).toMatch(/dataloader_num_workers 6 -> 0/);
    expect(run.stderr).not.toMatch(/per_device_train_batch_size \d+ ->/);
  });

  it('is not tried again where no setting of that kind is left: exit code 14, and what would help', async () => {
    launch('host', 0);
    sandbox.write('snug.yaml', sandbox.read('snug.yaml').replace('{dataloader_pin_memory}', 'True'));
    const run = await sandbox.run(['run']);
    expect(run.exitCode).toBe(14);
    expect(sandbox.onlyRun().attempts).toHaveLength(1);
    expect(run.stderr).toMatch(/would help: a machine, container or job with more RAM/);
  });
});
