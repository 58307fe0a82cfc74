import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const SCRIPT = resolve(fileURLToPath(import.meta.url), '../../../examples/pocket/train.py');
const hasPython = spawnSync('python3', ['--version']).status === 0;

describe.skipIf(!hasPython)('examples/pocket/train.py by itself', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'snug-pocket-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const train = (...flags: string[]) => {
    const fast = ['--output_dir', 'out', '--pocket_step_seconds', '0', '--max_steps', '12', '--save_steps', '5'];
    const { status, stdout, stderr } = spawnSync('python3', [SCRIPT, ...fast, ...flags], {
      cwd: folder,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const results = () => JSON.parse(readFileSync(join(folder, 'out', 'train_results.json'), 'utf8'));
  const longRow = [
    '--gradient_checkpointing',
    '--pocket_vram',
    '11GiB',
    '--pocket_long_sample_at=8',
    '--pocket-long-sample-factor',
    '3',
  ];

  it('dies of the long row in the words of the allocator, after a checkpoint, and goes on from it with fewer rows', () => {
    const first = train(...longRow, '--per_device_train_batch_size=4', '--gradient-accumulation-steps', '2');
    expect(first.status).toBe(1);
    expect(first.stdout.split('\n')[0]).toMatch(/standard library only/);
    expect(first.stderr).toMatch(/\r.* 7\/12 .*it\/s\]Traceback \(most recent call last\):/);
    expect(first.stderr).toMatch(
      /^torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate \d+\.\d\d [GM]iB\. GPU 0 has a total capacity of 11\.00 GiB of which /m,
    );
    expect(readdirSync(join(folder, 'out'))).toEqual(['checkpoint-5']);
    const state = JSON.parse(readFileSync(join(folder, 'out', 'checkpoint-5', 'trainer_state.json'), 'utf8'));
    expect(state).toMatchObject({ global_step: 5, train_batch_size: 4, max_steps: 12 });

    const resume = ['--resume_from_checkpoint', 'out/checkpoint-5'];
    const second = train(
      ...longRow,
      ...resume,
      '--per_device_train_batch_size',
      '2',
      '--gradient_accumulation_steps',
      '4',
    );
    expect(second.status).toBe(0);
    expect(results()).toMatchObject({ global_step: 12, resumed_from_step: 5, global_batch: 8, samples_seen: 96 });
  });

  it('trains to the end where every row fits', () => {
    const { status } = train(
      '--gradient_checkpointing',
      'true',
      '--pocket_vram',
      '11GiB',
      '--per_device_train_batch_size',
      '4',
    );
    expect(status).toBe(0);
    expect(results()).toMatchObject({ global_step: 12, resumed_from_step: 0 });
  });

  it('says which of its memory is short: the weights, the optimizer states', () => {
    const weights = train('--pocket_vram', '1GiB', '--per_device_train_batch_size', '1');
    expect(weights.stderr).toMatch(/in load_model[\s\S]*OutOfMemoryError/);
    const states = train('--pocket_vram', '5GiB', '--gradient_checkpointing', '--per_device_train_batch_size', '1');
    expect(states.stderr).toMatch(/in _init_group[\s\S]*OutOfMemoryError/);
    expect(existsSync(join(folder, 'out', 'checkpoint-5'))).toBe(false);
  });

  it('refuses what the Trainer refuses: an unknown flag, a checkpoint that is none', () => {
    expect(train('--per_device_batch', '3').status).toBe(2);
    expect(train('--resume_from_checkpoint', 'out/checkpoint-99').stderr).toMatch(
      /ValueError: Can't find a valid checkpoint at out\/checkpoint-99/,
    );
    expect(train('--resume_from_checkpoint', 'True').stderr).toMatch(
      /ValueError: No valid checkpoint found in output directory \(out\)/,
    );
  });
});
