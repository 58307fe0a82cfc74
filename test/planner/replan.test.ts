import { describe, expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import type { Failure } from '../../src/diagnosis/index.ts';
import type { MemoryEstimate } from '../../src/memory/index.ts';
import {
  type AttemptedPlan,
  DEFAULT_POLICY,
  type NextStep,
  type ReplanRequest,
  replan,
} from '../../src/planner/index.ts';
import { globalBatchSize, LEVER_CLASSES, type PlanValues } from '../../src/spec/index.ts';
import { peak, surroundings, toyEstimate, toyLora, toyValues, usable } from './toy.ts';

const estimateOf = (values: PlanValues): MemoryEstimate => {
  const result = toyEstimate(values);
  if (!result.ok) throw new Error('the toy always answers');
  return result.value;
};
const attempt = (values: PlanValues): AttemptedPlan => ({ values, estimate: estimateOf(values) });

const failure = (changes: Partial<Failure> = {}): Failure => ({
  kind: 'vram_capacity',
  resource: 'vram',
  phase: 'backward',
  confidence: 'high',
  candidates: [],
  evidence: [],
  numbers: {},
  ...changes,
});

const asked = (values: PlanValues, changes: Partial<ReplanRequest> = {}): ReplanRequest => ({
  values,
  attempts: [attempt(values)],
  failure: failure(),
  budget: usable(peak(values) + GiB),
  policy: DEFAULT_POLICY,
  surroundings: surroundings(),
  estimate: toyEstimate,
  checkpoint: undefined,
  ...changes,
});

const retried = (step: NextStep) => {
  if (step.kind !== 'retry') throw new Error(`gave up: ${step.reason}`);
  return step;
};
const moved = (step: NextStep) => retried(step).plan.changes.map(({ setting, to }) => [setting, to]);

describe('replan', () => {
  it('scales the prediction by what the allocator said', () => {
    const values = toyValues();
    const predicted = estimateOf(values);
    const allocatedBytes = Math.round(predicted.vram.allocatedPeakBytes * 1.2);
    const numbers = { allocatedBytes, triedBytes: 2 * GiB, reservedUnallocatedBytes: 0.1 * GiB };
    const budget = usable(34 * GiB);
    const { plan } = retried(replan(asked(values, { budget, failure: failure({ numbers }) })));
    const factor = (allocatedBytes + 2 * GiB) / predicted.vram.allocatedPeakBytes;
    const { allocatedPeakBytes, devicePeakBytes } = plan.estimate!.vram;
    // Context and cache do not grow with what torch allocates.
    expect(plan.calibratedBytes).toBe(Math.ceil(allocatedPeakBytes * factor) + devicePeakBytes - allocatedPeakBytes);
    expect(plan.calibratedBytes).toBeLessThanOrEqual(budget.usableBytes);
  });

  it('takes the size of the card as the least that was needed when there are no numbers', () => {
    const values = toyValues({ method: 'lora', lora: toyLora });
    const budget = usable(peak(values) * 2);
    const { plan } = retried(replan(asked(values, { budget })));
    expect(plan.estimate!.vram.devicePeakBytes * (budget.capacityBytes / peak(values))).toBeLessThanOrEqual(
      budget.usableBytes,
    );
  });

  it('counts what other programs were seen to hold, and does not blame the prediction for it', () => {
    const values = toyValues();
    const budget = usable(36 * GiB);
    const numbers = { totalBytes: 37 * GiB, othersBytes: 9 * GiB };
    const step = retried(replan(asked(values, { budget, failure: failure({ kind: 'vram_other_process', numbers }) })));
    expect(step.plan.estimate!.vram.devicePeakBytes).toBeLessThanOrEqual(27 * GiB);
    expect(step.plan.calibratedBytes).toBe(step.plan.estimate!.vram.devicePeakBytes);
  });

  it('does not shrink around somebody who took much of the card', () => {
    const values = toyValues();
    const numbers = { totalBytes: 37 * GiB, othersBytes: 15 * GiB };
    const crowded = failure({ kind: 'vram_other_process', numbers, holders: [{ pid: 4711, bytes: 15 * GiB }] });
    const step = replan(asked(values, { budget: usable(36 * GiB), failure: crowded }));
    expect(step).toMatchObject({
      kind: 'give-up',
      reason: expect.stringContaining('hold 15.0 GiB of the card (process 4711 with 15.0 GiB)'),
      wouldHelp: [expect.stringContaining('free the card')],
    });
    // Who was there when the run was planned is planned around already.
    const known = { ...usable(36 * GiB), usedByOthersBytes: 14 * GiB, usableBytes: 22 * GiB };
    expect(replan(asked(values, { budget: known, failure: crowded })).kind).toBe('retry');
  });

  it('offers more retries only where something smaller exists', () => {
    const values = toyValues();
    const never = { policy: { ...DEFAULT_POLICY, maxRetries: 0 } };
    expect(replan(asked(values, never))).toMatchObject({
      reason: 'no retry is allowed',
      wouldHelp: ['--retries 2 tries smaller settings'],
    });
    const last = replan(
      asked(values, {
        policy: { ...DEFAULT_POLICY, allow: ['free'], maxRetries: 0 },
        failure: failure({ phase: 'optimizer' }),
      }),
    );
    if (last.kind !== 'give-up') throw new Error('expected to give up');
    expect(last.reason).toMatch(/^no retry is allowed, and /);
    expect(last.wouldHelp.join()).not.toContain('--retries');
  });

  it('is smaller than what failed even where the prediction had room to spare', () => {
    const values = toyValues();
    const second = { ...values, perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 16 };
    const attempts = [attempt(values), attempt(second)];
    const crowded = failure({ kind: 'vram_other_process' });
    const step = retried(replan(asked(values, { attempts, budget: usable(peak(values) * 2), failure: crowded })));
    expect(step.plan.estimate!.vram.devicePeakBytes).toBeLessThan(peak(second));
  });

  it('starts from the original settings, not from the last attempt', () => {
    const values = toyValues({ perDeviceTrainBatchSize: 12, gradientAccumulationSteps: 1 });
    const second = { ...values, perDeviceTrainBatchSize: 4, gradientAccumulationSteps: 3 };
    const { plan } = retried(
      replan(asked(values, { attempts: [attempt(values), attempt(second)], budget: usable(peak(second)) })),
    );
    expect(globalBatchSize(plan.values)).toBe(globalBatchSize(values));
    for (const change of plan.changes) expect(change.from).toEqual(values[change.setting as keyof PlanValues]);
  });

  it('keeps the checkpoint where it can, and says when it cannot', () => {
    const values = toyValues();
    const kept = retried(replan(asked(values, { budget: usable(33 * GiB), checkpoint: values })));
    expect(kept.keepsCheckpoint).toBe(true);
    expect(kept.plan.values.optim).toBe(values.optim);
    const over = retried(replan(asked(values, { budget: usable(12 * GiB), checkpoint: values })));
    expect(over.keepsCheckpoint).toBe(false);
    expect(over.plan.values.optim).not.toBe(values.optim);
  });

  it('holds on to an 8-bit optimizer that the checkpoint was written with', () => {
    const values = toyValues();
    const second = { ...values, optim: 'adamw_bnb_8bit' };
    const step = retried(
      replan(asked(values, { attempts: [attempt(second)], checkpoint: second, budget: usable(peak(second)) })),
    );
    expect(step.plan.values.optim).toBe('adamw_bnb_8bit');
    expect(step.keepsCheckpoint).toBe(true);
  });

  it('answers fragmentation with the allocator alone, once', () => {
    const values = toyValues({ allocatorConf: 'max_split_size_mb:64' });
    const fragmented = failure({ kind: 'vram_fragmentation' });
    const step = replan(asked(values, { failure: fragmented }));
    expect(moved(step)).toEqual([['allocatorConf', 'max_split_size_mb:64,expandable_segments:True']]);
    const second = retried(step).plan.values;
    const next = retried(replan(asked(values, { attempts: [attempt(values), attempt(second)], failure: fragmented })));
    expect(next.plan.estimate!.vram.devicePeakBytes).toBeLessThan(peak(second));
  });

  it('leaves the allocator alone when little was reserved and free', () => {
    const values = toyValues();
    const numbers = { triedBytes: 2 * GiB, reservedUnallocatedBytes: 0.2 * GiB, allocatedBytes: peak(values) };
    for (const phase of ['backward', 'load', 'optimizer', 'unknown'] as const) {
      const step = replan(asked(values, { failure: failure({ phase, numbers }) }));
      if (step.kind === 'retry') expect(moved(step).map(([setting]) => setting)).not.toContain('allocatorConf');
    }
  });

  it.each(['load', 'save', 'resume'] as const)('does not answer a failure in %s with a smaller batch', (phase) => {
    const values = toyValues();
    const step = replan(
      asked(values, { failure: failure({ phase }), policy: { ...DEFAULT_POLICY, allow: ['exact'] } }),
    );
    expect(step).toMatchObject({ kind: 'give-up', reason: expect.stringContaining(`in the ${phase} phase`) });
  });

  it('answers a failure at load with a smaller base', () => {
    const values = toyValues({ method: 'lora', lora: toyLora, dtype: 'fp32' });
    const load = failure({ phase: 'load' });
    const first = retried(replan(asked(values, { failure: load })));
    expect(moved(first)).toEqual([['dtype', 'bf16']]);
    const second = replan(asked(values, { failure: load, attempts: [attempt(values), attempt(first.plan.values)] }));
    expect(retried(second).plan.values.method).toBe('qlora');
  });

  it('answers a failure in the optimizer step with the optimizer', () => {
    const step = replan(asked(toyValues(), { failure: failure({ phase: 'optimizer' }) }));
    expect(moved(step)).toEqual([['optim', 'adamw_bnb_8bit']]);
  });

  it('answers a failure in evaluation with the evaluation batch', () => {
    const values = toyValues({ eval: true, perDeviceEvalBatchSize: 6 });
    const first = replan(asked(values, { failure: failure({ kind: 'vram_eval_spike', phase: 'eval' }) }));
    expect(moved(first)).toEqual([['perDeviceEvalBatchSize', 3]]);
    const second = retried(first).plan.values;
    const again = replan(
      asked(values, { failure: failure({ phase: 'eval' }), attempts: [attempt(values), attempt(second)] }),
    );
    expect(moved(again)).toEqual([['perDeviceEvalBatchSize', 1]]);
  });

  it('halves the batch of an unknown model, with checkpointing, until nothing permitted is left', () => {
    const values = toyValues({
      perDeviceTrainBatchSize: 6,
      gradientAccumulationSteps: 2,
      optim: 'sgd',
      lossImpl: 'fused',
    });
    const blind = {
      estimate: undefined,
      budget: undefined,
      policy: { ...DEFAULT_POLICY, allow: ['exact'], forbid: ['activation-offload'], maxRetries: 9 },
    } as const;
    const attempts: AttemptedPlan[] = [{ values, estimate: undefined }];
    const seen: unknown[] = [];
    for (;;) {
      const step = replan(asked(values, { ...blind, attempts }));
      if (step.kind === 'give-up') break;
      const next = step.plan.values;
      expect(step.plan.estimate).toBeUndefined();
      expect(step.plan.calibratedBytes).toBeUndefined();
      expect(new Set(step.plan.changes.map(({ cost }) => cost))).toEqual(new Set(['not known']));
      seen.push([next.perDeviceTrainBatchSize, next.gradientAccumulationSteps, next.gradientCheckpointing.enabled]);
      attempts.push({ values: next, estimate: undefined });
    }
    expect(seen).toEqual([
      [3, 4, true],
      [1, 12, true],
    ]);
  });

  it('leaves checkpointing where it cannot be written', () => {
    const writable = (setting: string) => (setting === 'gradientCheckpointing' ? 'the script has no such flag' : true);
    const step = replan(
      asked(toyValues(), {
        estimate: undefined,
        attempts: [{ values: toyValues(), estimate: undefined }],
        surroundings: surroundings({ writable }),
      }),
    );
    expect(moved(step)).toEqual([
      ['perDeviceTrainBatchSize', 4],
      ['gradientAccumulationSteps', 8],
    ]);
  });

  it.each<[string, Partial<ReplanRequest>, RegExp]>([
    ['host RAM', { failure: failure({ kind: 'host_ram', resource: 'host_ram' }) }, /host RAM ran out/],
    [
      'no memory failure',
      { failure: failure({ kind: 'not_memory', resource: 'none' }) },
      /did not end for want of GPU memory/,
    ],
    [
      'all retries used',
      { attempts: [1, 2, 4, 8].map((micro) => attempt(toyValues({ perDeviceTrainBatchSize: micro }))) },
      /all 3 retries are used up/,
    ],
    ['a leak', { failure: failure({ kind: 'vram_leak_growth' }) }, /grew step after step/],
  ])('gives up on %s', (_, changes, reason) => {
    const step = replan(asked(toyValues(), changes));
    expect(step.kind).toBe('give-up');
    expect(step).toMatchObject({ reason: expect.stringMatching(reason) });
  });

  it('tries the smallest there is when nothing surely fits, and gives up when that is hardly smaller', () => {
    const values = toyValues();
    const { allocatedPeakBytes } = estimateOf(values).vram;
    const numbers = { allocatedBytes: allocatedPeakBytes * 1.5, triedBytes: GiB / 2 };
    const request = asked(values, { failure: failure({ numbers }), budget: usable(GiB) });
    const { plan, because } = retried(replan(request));
    expect(because).toContain('no permitted change surely covers');
    expect(plan.calibratedBytes!).toBeGreaterThan(request.budget!.usableBytes);
    expect(globalBatchSize(plan.values)).toBe(globalBatchSize(values));
    const again = { ...request, attempts: [...request.attempts, attempt(plan.values)] };
    expect(replan(again).kind).toBe('give-up');
  });

  it('sets a prediction aside that was several times too small, and halves the batch instead', () => {
    const values = toyValues({ perDeviceTrainBatchSize: 8, gradientAccumulationSteps: 2 });
    const numbers = { allocatedBytes: estimateOf(values).vram.allocatedPeakBytes * 30, triedBytes: GiB };
    const { plan, because } = retried(replan(asked(values, { failure: failure({ numbers }) })));
    expect(because).toContain('set aside');
    expect(plan.values.perDeviceTrainBatchSize).toBe(4);
    expect(plan.values.gradientAccumulationSteps).toBe(4);
    expect(plan.calibratedBytes).toBeUndefined();
  });

  it('never advises RAM for VRAM, and names the class that would help', () => {
    const values = toyValues({ perDeviceTrainBatchSize: 1, gradientAccumulationSteps: 1 });
    const step = replan(asked(values, { policy: { ...DEFAULT_POLICY, allow: ['free'] }, budget: usable(14 * GiB) }));
    if (step.kind !== 'give-up') throw new Error('expected to give up');
    expect(step.wouldHelp.join('\n')).toMatch(/--allow free,near: .*8-bit optimizer states.*predicted/);
    expect(step.wouldHelp.join('\n')).toMatch(/a GPU with [\d.]+ GiB free/);
    expect(step.wouldHelp.join('\n')).not.toMatch(/RAM/);
  });

  it('ends on any machine: smaller each time, never twice the same, the global batch kept', () => {
    const launches = [
      toyValues(),
      toyValues({
        perDeviceTrainBatchSize: 15,
        gradientAccumulationSteps: 2,
        method: 'lora',
        lora: toyLora,
        dtype: 'fp32',
      }),
      toyValues({ attnImplementation: 'eager', eval: true, perDeviceEvalBatchSize: 16 }),
    ];
    let runs = 0;
    for (const values of launches) {
      for (const wrongBy of [1.05, 1.3, 1.7]) {
        for (const share of [0.9, 0.5, 0.3]) {
          const real = (at: PlanValues): number => peak(at) * wrongBy;
          const budget = usable(Math.round(peak(values) * share));
          const policy = { ...DEFAULT_POLICY, allow: [...LEVER_CLASSES], maxRetries: 8 };
          const attempts = [attempt(values)];
          for (;;) {
            const last = attempts.at(-1)!;
            if (real(last.values) <= budget.capacityBytes) break;
            const phase = 'backward';
            const step = replan(
              asked(values, {
                attempts,
                budget,
                policy,
                failure: failure({ phase, numbers: { totalBytes: budget.capacityBytes } }),
              }),
            );
            if (step.kind === 'give-up') break;
            expect(globalBatchSize(step.plan.values)).toBe(globalBatchSize(values));
            expect(step.plan.estimate!.vram.devicePeakBytes).toBeLessThan(last.estimate!.vram.devicePeakBytes);
            expect(attempts.map((earlier) => JSON.stringify(earlier.values))).not.toContain(
              JSON.stringify(step.plan.values),
            );
            attempts.push(attempt(step.plan.values));
            expect(attempts.length).toBeLessThan(10);
          }
          runs += attempts.length;
        }
      }
    }
    expect(runs).toBeGreaterThan(30);
  });
});
