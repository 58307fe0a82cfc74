import { expect, it } from 'vitest';
import { parseNativePlan } from '../../../src/dialects/index.ts';
import { said } from '../phrase-book.ts';

it('reads a plan without a command', () => {
  const plan = parseNativePlan({
    id: 'p-9',
    model_config: { hidden_size: 96 },
    method: 'lora',
    dtype: 'fp16',
    mixed_precision: 'bf16',
    per_device_train_batch_size: 3,
    max_length: 77,
    gradient_checkpointing: true,
    lora: { r: 6, target_modules: 'all-linear', modules_to_save: ['lm_head'] },
    versions: { torch: '2.9' },
  });
  expect(plan).toMatchObject({ ok: true, value: { id: 'p-9', modelConfig: { hidden_size: 96 } } });
  if (!plan.ok) return;
  const { spec } = plan.value;
  expect(said({ spec } as never, 'perDeviceTrainBatchSize', 'optim', 'dtype')).toEqual({
    perDeviceTrainBatchSize: '3 <- plan p-9',
    optim: '"adamw_torch_fused" <- default snug 0.1',
    dtype: '"fp16" <- plan p-9',
  });
  expect(spec.gradientCheckpointing?.value?.enabled).toBe(true);
  expect(spec.lora?.value).toMatchObject({ r: 6, loraAlpha: 32, modulesToSave: ['lm_head'] });
});

it.each<[unknown, string]>([
  [{ max_length: 5 }, 'the plan has no id'],
  [{ id: 'a', max_length: '5' }, 'max_length is "5", expected a whole number from 1'],
  [{ id: 'a', maxlength: 5 }, 'unknown key maxlength'],
  [[1], 'the config is [1], expected a map of keys'],
  [null, 'the config is empty, expected a map of keys'],
])('says what is wrong with %j', (value, message) => {
  const plan = parseNativePlan(value);
  expect(plan.ok ? [] : plan.error.map((each) => each.message)).toEqual([message]);
});
