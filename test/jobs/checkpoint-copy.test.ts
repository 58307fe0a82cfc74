import { expect, it } from 'vitest';
import { batchToSay, checkpointBatchWins, copyWithBatch } from '../../src/jobs/checkpoint-copy.ts';
import type { RunCheckpoint } from '../../src/jobs/checkpoint-of-run.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { fakePorts } from '../support/fake-ports.ts';

const values = (perDeviceTrainBatchSize: number) => ({ perDeviceTrainBatchSize }) as PlanValues;
const checkpoint = (more: Partial<RunCheckpoint> = {}): RunCheckpoint => ({
  path: '/project/out/checkpoint-30',
  step: 30,
  values: values(6),
  outputDir: 'out',
  trainBatchSize: 6,
  maxSteps: 90,
  skipped: [],
  ...more,
});

it.each([
  ['another micro batch', checkpoint(), values(3), 3],
  ['the same micro batch', checkpoint(), values(6), undefined],
  ['data parallelism over 4 GPUs in one process', checkpoint({ trainBatchSize: 24 }), values(2), 8],
  ['a checkpoint that names none', checkpoint({ trainBatchSize: undefined }), values(2), undefined],
  ['a writer that is not known', checkpoint({ values: undefined, trainBatchSize: 5 }), values(2), 2],
  ['settings that are not known', checkpoint(), undefined, undefined],
])('what a checkpoint must say under %s', (_, from, next, wanted) => {
  expect(batchToSay(from, next)).toBe(wanted);
});

it.each([
  ['4.57.1', true],
  ['5.16.0', true],
  ['5.17.0', false],
  ['6.0.0.dev0', false],
  ['', true],
])('transformers %s takes the batch of the checkpoint: %s', async (version, wins) => {
  const ports = fakePorts({ programs: () => ({ stdout: `${version}\n` }) });
  expect(await checkpointBatchWins(ports, ['python3'])).toBe(wins);
});

it('takes no chances where the trainer’s Python cannot be told or asked', async () => {
  expect(await checkpointBatchWins(fakePorts(), undefined)).toBe(true);
  expect(await checkpointBatchWins(fakePorts(), ['gone'])).toBe(true);
});

it('stands in for the checkpoint with links and a state of its own, and leaves the checkpoint as it is', () => {
  const state =
    '{\n  "global_step": 30,\n  "log_history": [{"step": 1}],\n  "train_batch_size": 6,\n  "max_steps": 90\n}';
  const files = {
    '/project/out/checkpoint-30/trainer_state.json': state,
    '/project/out/checkpoint-30/optimizer.pt': 'states',
    '/project/out/checkpoint-30/global_step30/mp_rank_00_model_states.pt': 'shard',
  };
  const ports = fakePorts({ cwd: '/project', files });
  const copy = copyWithBatch(ports, checkpoint(), 3, '/run/attempts/2/resume');
  expect(copy).toEqual({ ok: true, value: '/run/attempts/2/resume/checkpoint-30' });
  expect(ports.written.get('/run/attempts/2/resume/checkpoint-30/trainer_state.json')).toBe(
    state.replace('"train_batch_size": 6', '"train_batch_size": 3'),
  );
  expect(ports.files.readText('/run/attempts/2/resume/checkpoint-30/optimizer.pt')).toMatchObject({ value: 'states' });
  expect(ports.files.readText('/project/out/checkpoint-30/trainer_state.json')).toMatchObject({ value: state });
});

it('says so when the copy cannot be made', () => {
  const files = { '/project/out/checkpoint-30/trainer_state.json': '{}' };
  expect(copyWithBatch(fakePorts({ files, unwritable: 'EROFS' }), checkpoint(), 3, '/run')).toMatchObject({
    ok: false,
    error: [{ code: 'checkpoint-copy', message: expect.stringContaining('EROFS') }],
  });
});
