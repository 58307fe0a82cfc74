import { expect, it } from 'vitest';
import type { SettingName } from '../../src/spec/index.ts';
import { read, readBack, rewrite } from './phrase-book.ts';

const BATCH: Partial<Record<SettingName, unknown>> = { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 12 };

it.each([
  ['a Trainer script', 'python tune.py --do_train --per_device_train_batch_size 8 --auto_find_batch_size', {}],
  ['TRL', 'trl sft --per_device_train_batch_size 8 --auto_find_batch_size true', {}],
  [
    'LLaMA-Factory',
    'llamafactory-cli train a.yaml',
    { 'a.yaml': 'auto_find_batch_size: true\nper_device_train_batch_size: 8\n' },
  ],
  ['axolotl', 'axolotl train a.yaml', { 'a.yaml': 'auto_find_batch_size: true\nmicro_batch_size: 8\n' }],
])('the batch search of %s is turned off with the first batch it is told', (_, line, files) => {
  const machine = { files, gpus: 1 };
  const reading = read(line, machine);
  expect(reading.diagnostics.map(({ code }) => code)).toContain('auto-find-batch-size');
  const again = readBack(rewrite(reading, BATCH), machine);
  expect(again.diagnostics.map(({ code }) => code)).not.toContain('auto-find-batch-size');
  expect(again.spec.perDeviceTrainBatchSize?.value).toBe(2);
  // Nothing that is no batch touches it.
  const other = readBack(rewrite(reading, { perDeviceEvalBatchSize: 3 }), machine);
  expect(other.diagnostics.map(({ code }) => code)).toContain('auto-find-batch-size');
});
