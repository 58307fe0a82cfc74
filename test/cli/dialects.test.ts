import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeSandbox, type Sandbox } from '../support/snug-cli.ts';

let box: Sandbox;
beforeAll(() => {
  box = makeSandbox();
});
afterAll(() => box.remove());

it('lists every launch tool in 80 columns', async () => {
  const { exitCode, stdout, stderr } = await box.run(['dialects']);
  expect([exitCode, stderr]).toEqual([0, '']);
  for (const id of ['native', 'torchrun', 'axolotl', 'trl', 'deepspeed-config', 'wrappers']) {
    expect(stdout).toMatch(new RegExp(`^${id}  `, 'm'));
  }
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
});

it('says of one of them which settings are written, as text and as JSON', async () => {
  const text = await box.run(['dialects', 'axolotl']);
  expect(text.stdout).toMatch(/^per_device_train_batch_size\s+read and written$/m);
  expect(text.stdout).toMatch(/^dtype\s+read; not written: /m);
  const { stdout } = await box.run(['dialects', 'axolotl', 'python', '--json']);
  const { schema_version, dialects } = JSON.parse(stdout);
  expect([schema_version, dialects.map(({ id }: { id: string }) => id)]).toEqual([1, ['axolotl', 'python']]);
  expect(dialects[0].settings).toContainEqual({ setting: 'max_length', read: true, written: true, reason: null });
});

it('knows no otters', async () => {
  const { exitCode, stdout, stderr } = await box.run(['dialects', 'axolotls']);
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/error\[unknown-dialect\]: axolotls is no launch tool.*\n.*did you mean axolotl/);
});
