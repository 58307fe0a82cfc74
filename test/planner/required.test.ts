import { describe, expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import { memoryBudget } from '../../src/memory/index.ts';
import { DEFAULT_POLICY, planRun } from '../../src/planner/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { requestOf } from './grid.ts';
import { toyValues } from './toy.ts';

const TURING = { major: 7, minor: 5 };
const AMPERE = { major: 8, minor: 6 };
const adapter = { r: 8, loraAlpha: 16, loraDropout: 0, targetModules: 'default', modulesToSave: [] } as const;

function planned(
  values: Partial<PlanValues>,
  computeCapability: typeof TURING | undefined,
  allow = DEFAULT_POLICY.allow,
) {
  const request = requestOf({ model: 0, start: 0, card: 6 }, undefined);
  return planRun({
    ...request,
    values: toyValues({ maxLength: 256, perDeviceTrainBatchSize: 1, ...values }),
    budget: memoryBudget(80 * GiB, 0, 0.05),
    policy: { ...DEFAULT_POLICY, allow },
    surroundings: { ...request.surroundings, computeCapability },
  });
}

const set = (plan: ReturnType<typeof planned>) =>
  Object.fromEntries(plan.changes.map(({ setting, to }) => [setting, to]));

describe('a run that fits, on a card without bf16', () => {
  it.each<[string, Partial<PlanValues>, object]>([
    ['autocast', { dtype: 'fp32', mixedPrecision: 'bf16' }, { mixedPrecision: 'fp16' }],
    [
      'trained weights are held in fp32: fp16 alone does not train',
      { dtype: 'bf16', mixedPrecision: 'no' },
      { dtype: 'fp32', mixedPrecision: 'fp16' },
    ],
    [
      'a frozen base, and adapters in fp32',
      { method: 'lora', dtype: 'bf16', mixedPrecision: 'bf16', lora: { ...adapter, adapterDtype: 'bf16' } },
      { dtype: 'fp16', mixedPrecision: 'fp16', lora: { ...adapter, adapterDtype: 'fp32' } },
    ],
    [
      'FlashAttention',
      { dtype: 'fp32', mixedPrecision: 'fp16', attnImplementation: 'flash_attention_2' },
      { attnImplementation: 'sdpa' },
    ],
  ])('%s', (_, values, expected) => {
    const plan = planned(values, TURING);
    expect(plan.verdict).toBe('rewrite');
    expect(set(plan)).toEqual(expected);
  });

  it.each<[string, Partial<PlanValues>, typeof TURING | undefined]>([
    ['a card that has it', { dtype: 'bf16', mixedPrecision: 'bf16', attnImplementation: 'flash_attention_2' }, AMPERE],
    ['a card of which nothing is known', { dtype: 'bf16', mixedPrecision: 'bf16' }, undefined],
    ['a run without it', { dtype: 'fp32', mixedPrecision: 'fp16' }, TURING],
  ])('%s is left alone', (_, values, capability) => {
    expect(planned(values, capability).verdict).toBe('fits');
  });

  it('is left alone where the policy does not allow it', () => {
    expect(planned({ dtype: 'fp32', mixedPrecision: 'bf16' }, TURING, ['free', 'exact']).verdict).toBe('fits');
  });
});

it('goes together with what makes the run fit', () => {
  const request = requestOf({ model: 4, start: 3, card: 3 }, undefined);
  const plan = planRun({ ...request, surroundings: { ...request.surroundings, computeCapability: TURING } });
  expect(plan.verdict).toBe('rewrite');
  expect(set(plan)).toMatchObject({ mixedPrecision: 'fp16' });
  expect(plan.changes.length).toBeGreaterThan(1);
  expect(plan.estimate.vram.devicePeakBytes).toBeLessThanOrEqual(request.budget.usableBytes);
});
