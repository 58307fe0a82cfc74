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

const POCKET = join(ROOT, 'examples', 'pocket', 'train.py');

describe('a model nobody here has heard of', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
  });
  afterEach(() => sandbox.remove());

  // 8 rows fit the pretended card, the long row at step 15 does not; 4 rows do.
  const launch = [
    ...['--', 'python3', POCKET, '--model_name_or_path', 'acme/unheard-of-7b', '--output_dir', 'out'],
    ...['--per_device_train_batch_size', '8', '--gradient_accumulation_steps', '3', '--gradient_checkpointing'],
    ...['--max_length', '1024', '--max_steps', '20', '--save_steps', '10', '--pocket_step_seconds', '0.01'],
    ...['--pocket_vram', '12GiB', '--pocket_long_sample_at', '15', '--pocket_long_sample_factor', '2'],
  ];

  it('check: exit code 12, and how to hand over its architecture', async () => {
    const { exitCode, stdout, stderr } = await sandbox.run(['check', '--gpu', '24GiB', ...launch]);
    expect(exitCode).toBe(12);
    const said = stdout + stderr;
    expect(said).toContain('acme/unheard-of-7b');
    expect(said).toMatch(/help: .*--model/);
    expect(said).not.toMatch(/^\s+at .*\.js/m);
    expect(sandbox.exists('.snug')).toBe(false);
  });

  it('run: starts it, and after an OOM goes on with a smaller micro batch from the last checkpoint', async () => {
    const { exitCode } = await sandbox.run(['run', '--gpu', '24GiB', ...launch]);
    expect(exitCode).toBe(0);
    const results = JSON.parse(sandbox.read('out/train_results.json'));
    expect(results).toMatchObject({ global_step: 20, resumed_from_step: 10, global_batch: 24, samples_seen: 480 });
    expect(results.per_device_train_batch_size).toBeLessThan(8);
    expect(sandbox.onlyRun().attempts).toHaveLength(2);
  });

  it('run --mode refuse: exit code 12, not started', async () => {
    const { exitCode } = await sandbox.run(['run', '--mode', 'refuse', '--gpu', '24GiB', ...launch]);
    expect(exitCode).toBe(12);
    expect(sandbox.exists('out')).toBe(false);
  });
});
