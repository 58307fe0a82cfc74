import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, makeSandbox, ROOT, type Sandbox, SETUP_TIMEOUT_MS } from '../support/snug-cli.ts';

const SCRIPT = join(ROOT, 'test', 'fixtures', 'e2e', 'leaky.py');

describe.skipIf(process.platform !== 'linux')('a trainer that keeps something from every step', () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    await ensureBuilt();
    sandbox = makeSandbox({ gpus: [{ name: 'NVIDIA GeForce RTX 3090', total: 24576, used: 500 }] });
  }, SETUP_TIMEOUT_MS);
  afterAll(() => sandbox.remove());

  it('is told of before the card is full, and goes on from its checkpoint with the batch it had', async () => {
    const driver = join(sandbox.folder, '..', 'programs', 'nvidia-smi.json');
    const flags = ['--output_dir', 'out', '--per_device_train_batch_size', '4', '--max_steps', '200'];
    const run = await sandbox.run(['run', '--', 'python3', SCRIPT, '--driver', driver, ...flags]);
    expect(run.exitCode, run.stderr).toBe(0);
    const said = run.stderr.replaceAll(/\nsnug: +/g, ' ');
    const [, perStep, fullAt] =
      /grown by (\d+) MiB a step since step \d+: .* the card is full at about step (\d+)/.exec(said)!;
    expect(Number(perStep) / 130).toBeCloseTo(1, 0);
    // Full at step 128; steps that the samples miss move it a little.
    expect(Math.abs(Number(fullAt) - 128)).toBeLessThan(20);
    const { attempts } = sandbox.onlyRun();
    expect(attempts.map(({ log }) => /batch \d+ from \d+/.exec(log)![0])).toEqual([
      'batch 4 from 0',
      'batch 4 from 120',
    ]);
    expect(attempts[0]!.outcome).toMatchObject({ failure: { kind: 'vram_leak_growth' } });
    expect(sandbox.leftProcesses()).toEqual([]);
  });
});
