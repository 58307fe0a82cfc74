import { expect, it } from 'vitest';
import { createRunFolder, runName } from '../../src/jobs/run-folder.ts';
import { fakePorts } from '../support/fake-ports.ts';

const now = () => new Date('2026-03-04T05:06:07Z');

it.each([
  [['torchrun', '--nproc-per-node', '2', 'sub/train_sft.py', '--config', 'a.yaml'], undefined, 'train_sft'],
  [['trl', 'sft', '--config', 'runs/My Run.yaml'], undefined, 'My-Run'],
  [['python', 'x.py'], 'configs/big.snug.yaml', 'big-snug'],
  [['./trainer'], undefined, 'trainer'],
  [[], undefined, 'run'],
])('names a run after %j', (argv, config, name) => {
  expect(runName(argv, config)).toBe(name);
});

it('keeps state and attempts below .snug/runs, named by the time in UTC', () => {
  const ports = fakePorts({ now });
  const folder = createRunFolder(ports, 'train');
  if (!folder.ok) throw new Error('not made');
  expect(folder.value.path).toBe('/project/.snug/runs/20260304-050607-train');
  folder.value.saveState({ state: 'starting' });
  expect(JSON.parse(ports.written.get('/project/.snug/runs/20260304-050607-train/run.json')!)).toEqual({
    state: 'starting',
  });
  expect(folder.value.openAttempt(2)).toEqual({
    ok: true,
    value: '/project/.snug/runs/20260304-050607-train/attempts/2',
  });
});

it('gives two runs of the same second different folders', () => {
  const ports = fakePorts({ now, folders: ['/project/.snug/runs/20260304-050607-train'] });
  expect(createRunFolder(ports, 'train')).toMatchObject({ value: { id: '20260304-050607-train-2' } });
});

it('says so when the working directory cannot be written', () => {
  const made = createRunFolder(fakePorts({ now, unwritable: 'EROFS' }), 'train');
  expect(made.ok ? [] : made.error).toMatchObject([
    { code: 'run-folder', message: expect.stringContaining('the file system is read-only') },
  ]);
});
