import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeSandbox, ROOT } from '../support/snug-cli.ts';

/** The session of the README: a trainer dies, its log is read, what is said is done, and the run comes home. */
it('a dead run is read, changed as told, and done', async () => {
  const box = makeSandbox();
  for (const name of ['train.py', 'snug.yaml']) cpSync(join(ROOT, 'examples', 'pocket', name), join(box.folder, name));
  const train = (batch: number, steps: number) =>
    box.startProgram([
      'python3',
      'train.py',
      '--per_device_train_batch_size',
      String(batch),
      '--gradient_accumulation_steps',
      String(steps),
      '--gradient_checkpointing',
      'true',
      '--max_length',
      '1024',
      '--output_dir',
      'runs/pocket',
      '--pocket_vram',
      '11GiB',
      '--pocket_step_seconds',
      '0',
    ]).ended;

  const dead = await train(16, 2);
  expect(dead.exitCode).toBe(1);
  box.write('train.log', dead.stderr);
  const said = await box.run(['diagnose', 'train.log', '--config', 'snug.yaml', '--json']);
  const { kind, verdict, numbers, remedies } = JSON.parse(said.stdout);
  expect([said.exitCode, kind, verdict]).toEqual([0, 'vram_capacity', 'retry_smaller']);
  expect(numbers.total_bytes).toBe(11 * 2 ** 30);
  expect(remedies[0].id).toBe('settings-that-fit');
  const numberOf = (key: string): number => {
    const edit = remedies[0].edits.find(({ after }: { after: string }) => after.startsWith(`${key}: `));
    expect(edit.place).toMatch(/^snug\.yaml:\d+$/);
    expect(box.read('snug.yaml').split('\n')[Number(edit.place.split(':')[1]) - 1]).toBe(edit.before);
    return Number(edit.after.split(': ')[1]);
  };
  const [batch, steps] = [numberOf('per_device_train_batch_size'), numberOf('gradient_accumulation_steps')];
  expect(batch * steps).toBe(32);
  const done = await train(batch, steps);
  expect([done.exitCode, box.exists('runs/pocket/train_results.json')]).toEqual([0, true]);
  box.remove();
});
