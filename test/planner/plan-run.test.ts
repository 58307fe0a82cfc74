import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { error, fail, GiB } from '../../src/core/index.ts';
import { DEFAULT_POLICY, type Plan, planRun } from '../../src/planner/index.ts';
import {
  globalBatchSize,
  LEVER_CLASSES,
  type LeverClass,
  type PlanValues,
  type SpecChange,
} from '../../src/spec/index.ts';
import { compareRanks, everyPlan } from './brute-force.ts';
import { peak, request, surroundings, toyEstimate, toyLora, toyValues } from './toy.ts';

const allowing = (...allow: LeverClass[]) => ({ policy: { ...DEFAULT_POLICY, allow } });
const moves = (changes: readonly SpecChange[]) => changes.map(({ setting, to, lever }) => [lever, setting, to]);
const rewrite = (plan: Plan) => {
  if (plan.verdict !== 'rewrite') throw new Error(`expected a rewrite, not ${plan.verdict}`);
  return plan;
};
/** What all changes of a plan save together. */
const saved = ({ changes }: Plan): number => changes.reduce((sum, { savesBytes }) => sum + savesBytes, 0);
const refused = (plan: Plan) => {
  if (plan.verdict !== 'refuse') throw new Error(`expected a refusal, not ${plan.verdict}`);
  return plan;
};

const heavy: PlanValues = toyValues({
  method: 'lora',
  lora: toyLora,
  dtype: 'fp32',
  mixedPrecision: 'no',
  attnImplementation: 'eager',
  eval: true,
  perDeviceTrainBatchSize: 6,
  gradientAccumulationSteps: 10,
  maxLength: 512,
});

describe('planRun', () => {
  it('leaves a run alone that fits to the byte', () => {
    const plan = planRun(request(peak(toyValues())));
    expect(plan).toMatchObject({ verdict: 'fits', changes: [], values: toyValues() });
  });

  it('rewrites the same run when one byte is missing', () => {
    expect(planRun(request(peak(toyValues()) - 1)).verdict).toBe('rewrite');
  });

  it('takes free levers before slower ones', () => {
    const plan = rewrite(planRun(request(peak(toyValues({ lossImpl: 'chunked' })))));
    expect(moves(plan.changes)).toEqual([['loss', 'lossImpl', 'chunked']]);
    expect(plan.changes[0]!.savesBytes).toBe(peak(toyValues()) - peak(plan.values));
    expect(plan.changes[0]!.class).toBe('free');
  });

  it('halves the micro batch at the same global batch', () => {
    const plan = rewrite(planRun(request(27 * GiB, allowing('exact'))));
    expect(moves(plan.changes)).toEqual([
      ['micro-batch', 'perDeviceTrainBatchSize', 2],
      ['micro-batch', 'gradientAccumulationSteps', 16],
    ]);
    expect(globalBatchSize(plan.values)).toBe(64);
  });

  it('finds QLoRA for a full-precision LoRA run on a small card', () => {
    const plan = rewrite(planRun(request(2.4 * GiB, { values: heavy })));
    expect(plan.values).toMatchObject({
      method: 'qlora',
      dtype: 'bf16',
      quantization: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16' },
    });
    expect(plan.values.lora).toEqual(toyLora);
    expect(globalBatchSize(plan.values)).toBe(globalBatchSize(heavy));
  });

  it('computes in fp16 where the card has no bf16', () => {
    const old = surroundings({ computeCapability: { major: 7, minor: 5 } });
    const plan = rewrite(planRun(request(2.4 * GiB, { values: heavy, surroundings: old })));
    expect(plan.values.quantization?.computeDtype).toBe('fp16');
  });

  it('does not quantise without bitsandbytes, and says so', () => {
    const bare = surroundings({ packages: { bitsandbytes: false, flashAttn: false, liger: false } });
    const plan = refused(planRun(request(2.4 * GiB, { values: heavy, surroundings: bare })));
    expect(plan.values).toEqual(heavy);
    expect(plan.refusal.unavailable).toContainEqual({
      lever: 'qlora',
      reason: "bitsandbytes does not import in the trainer's Python",
    });
    expect(plan.refusal.shortfallBytes).toBe(plan.refusal.smallest.estimate.vram.devicePeakBytes - 2.4 * GiB);
    expect(plan.refusal.hostShortfallBytes).toBe(0);
  });

  it('keeps its hands off settings the launch cannot be told', () => {
    const writable = (setting: string) => (setting === 'optim' ? 'the recipe fixes the optimizer' : true);
    const plan = refused(planRun(request(9.5 * GiB, { surroundings: surroundings({ writable }) })));
    expect(plan.refusal.smallest.changes.map(({ setting }) => setting)).not.toContain('optim');
    expect(plan.refusal.unavailable).toContainEqual({
      lever: 'optimizer-8bit',
      reason: 'optim: the recipe fixes the optimizer',
      untold: ['optim'],
    });
  });

  it('says which one setting it would have to be told', () => {
    const writable = (setting: string) =>
      setting === 'optim' || setting === 'lossImpl' ? `${setting} has no flag, so it cannot be told ${setting}` : true;
    const { ifTold, unavailable } = refused(
      planRun(request(14.6 * GiB, { surroundings: surroundings({ writable }) })),
    ).refusal;
    expect(ifTold?.settings).toEqual(['optim']);
    expect(ifTold?.estimate.vram.devicePeakBytes).toBeLessThanOrEqual(14.6 * GiB);
    expect(moves(ifTold!.changes)).toContainEqual(['optimizer-8bit', 'optim', 'adamw_bnb_8bit']);
    expect(unavailable).toContainEqual(expect.objectContaining({ lever: 'loss', untold: ['lossImpl'] }));
  });

  it('asks for nothing to be told where that would not do, and names no lever the policy forbids', () => {
    const writable = (setting: string) => (setting === 'optim' ? 'the recipe fixes it' : true);
    const around = { surroundings: surroundings({ writable }) };
    expect(refused(planRun(request(3 * GiB, around))).refusal.ifTold).toBeUndefined();
    const { refusal } = refused(planRun(request(3 * GiB, { ...around, ...allowing('exact') })));
    expect(refusal.unavailable).toEqual([]);
    expect(refused(planRun(request(6 * GiB))).refusal.ifTold).toBeUndefined();
  });

  it('names the class that would have to be allowed, mildest first', () => {
    const plan = refused(planRun(request(6 * GiB)));
    expect(plan.refusal.wouldFit.map(({ allow }) => allow)).toEqual(['method']);
    const [method] = plan.refusal.wouldFit;
    expect(method!.estimate.vram.devicePeakBytes).toBeLessThanOrEqual(6 * GiB);
    expect(moves(method!.changes)).toContainEqual(['lora', 'method', 'lora']);
  });

  it('cuts rows only when told to, and as little as will do', () => {
    const values = toyValues({ perDeviceTrainBatchSize: 1, gradientAccumulationSteps: 1, maxLength: 8192 });
    const fixed = { values, ...allowing('data') };
    const once = peak({ ...values, maxLength: 4096 });
    expect(rewrite(planRun(request(once, fixed))).values.maxLength).toBe(4096);
    expect(rewrite(planRun(request(once - 1, fixed))).values.maxLength).toBe(2048);
    expect(planRun(request(once, { values, ...allowing('free') })).verdict).toBe('refuse');
  });

  it('does not buy device memory with host RAM that is not there', () => {
    const room = 10 * GiB;
    const ample = rewrite(planRun(request(room, { surroundings: surroundings({ hostRamBytes: 40 * GiB }) })));
    expect(ample.values.optim).toBe('paged_adamw_8bit');
    const narrow = rewrite(planRun(request(room + 3 * GiB, { surroundings: surroundings({ hostRamBytes: 4 * GiB }) })));
    expect(narrow.values.optim).toBe('adamw_bnb_8bit');
    expect(narrow.estimate.ram.peakBytes).toBeLessThanOrEqual(4 * GiB);
  });

  it('says when only host RAM stands in the way', () => {
    const plan = refused(planRun(request(20 * GiB, { surroundings: surroundings({ hostRamBytes: 2 * GiB }) })));
    expect(plan.refusal.shortfallBytes).toBe(0);
    expect(plan.refusal.hostShortfallBytes).toBe(1 * GiB);
  });

  it('treats settings that cannot be estimated as not there', () => {
    const estimate = (values: PlanValues) =>
      values.lossImpl === 'full' ? toyEstimate(values) : fail(error('unknown', 'no such loss'));
    const plan = rewrite(planRun(request(peak(toyValues({ lossImpl: 'chunked' })), { estimate })));
    expect(plan.values.lossImpl).toBe('full');
  });

  it('gives the same answer as trying every plan', () => {
    const launches: PlanValues[] = [
      toyValues(),
      { ...heavy, gradientAccumulationSteps: 1, perDeviceEvalBatchSize: 3 },
      toyValues({ eval: true, perDeviceEvalBatchSize: 64, gradientAccumulationSteps: 1 }),
    ];
    const everything = { bitsandbytes: true, flashAttn: true, liger: true };
    const cases: [LeverClass[], typeof everything][] = [
      [['free', 'exact'], everything],
      [['exact', 'near'], everything],
      [DEFAULT_POLICY.allow as LeverClass[], { ...everything, flashAttn: false }],
      [['exact', 'qlora', 'method', 'data'], everything],
    ];
    let compared = 0;
    for (const values of launches) {
      for (const [allow, packages] of cases) {
        const given = { values, surroundings: surroundings({ packages }), ...allowing(...allow) };
        const plans = everyPlan(request(0, given)).map((plan) => ({ ...plan, bytes: peak(plan.values) }));
        for (const share of [0.97, 0.7, 0.5, 0.3, 0.2, 0.12, 0.06]) {
          const usable = Math.floor(peak(values) * share);
          const plan = planRun(request(usable, given));
          const leastOf = (some: typeof plans) =>
            some.reduce<(typeof plans)[number] | undefined>(
              (least, one) => (least && compareRanks(least.rank, one.rank) <= 0 ? least : one),
              undefined,
            );
          const best = leastOf(plans.filter(({ bytes }) => bytes <= usable));
          expect(plan.verdict).toBe(best ? 'rewrite' : 'refuse');
          if (!best) continue;
          const same = plans.filter(({ bytes }) => bytes === plan.estimate.vram.devicePeakBytes);
          const found = leastOf(same.filter((one) => isDeepStrictEqual(one.values, plan.values)))!;
          expect(compareRanks(found.rank, best.rank), `${allow} at ${share}: ${found.levers}, not ${best.levers}`).toBe(
            0,
          );
          compared += 1;
        }
      }
    }
    expect(compared).toBeGreaterThan(50);
  });

  it('keeps the global batch and needs every change, whatever the numbers', () => {
    for (const [micro, steps, ranks] of [
      [7, 3, 1],
      [12, 5, 2],
      [32, 1, 4],
      [1, 1, 1],
      [10, 6, 3],
      [64, 60, 8],
    ] as const) {
      const values = toyValues({
        perDeviceTrainBatchSize: micro,
        gradientAccumulationSteps: steps,
        distributed: { nodes: 1, processesPerNode: ranks, strategy: 'ddp', offload: [] },
      });
      for (const share of [0.95, 0.7, 0.5, 0.35]) {
        const usable = Math.floor(peak(values) * share);
        const plan = planRun(request(usable, { values }));
        if (plan.verdict !== 'rewrite') continue;
        expect(globalBatchSize(plan.values)).toBe(micro * steps * ranks);
        expect(Number.isInteger(plan.values.gradientAccumulationSteps)).toBe(true);
        expect(plan.estimate.vram.devicePeakBytes).toBeLessThanOrEqual(usable);
        expect(saved(plan)).toBe(peak(values) - peak(plan.values));
        for (const lever of new Set(plan.changes.map((change) => change.lever))) {
          const undone = Object.fromEntries(
            plan.changes.filter((change) => change.lever === lever).map(({ setting, from }) => [setting, from]),
          );
          expect(peak({ ...plan.values, ...undone }), lever).toBeGreaterThan(usable);
        }
      }
    }
  });

  it('stays honest with an estimator in which levers work against each other', () => {
    const noise = (values: PlanValues): number => {
      const text = JSON.stringify(values);
      let hash = 7;
      for (let at = 0; at < text.length; at += 1) hash = (hash * 31 + text.charCodeAt(at)) % 65_521;
      return 0.8 + (0.4 * hash) / 65_521;
    };
    const estimate = (values: PlanValues) => {
      const result = toyEstimate(values);
      if (!result.ok) return result;
      const { vram } = result.value;
      const devicePeakBytes = Math.round(vram.devicePeakBytes * noise(values));
      return { ok: true, value: { ...result.value, vram: { ...vram, devicePeakBytes } } } as const;
    };
    const bytes = (values: PlanValues): number => {
      const result = estimate(values);
      return result.ok ? result.value.vram.devicePeakBytes : Number.NaN;
    };
    let rewrites = 0;
    for (const values of [toyValues(), heavy]) {
      for (let usable = 2 * GiB; usable < peak(values); usable *= 1.15) {
        const plan = planRun(request(Math.floor(usable), { values, estimate, ...allowing(...LEVER_CLASSES) }));
        expect(globalBatchSize(plan.values)).toBe(globalBatchSize(values));
        if (plan.verdict === 'refuse') expect(plan.refusal.shortfallBytes).toBeGreaterThan(0);
        if (plan.verdict !== 'rewrite') continue;
        expect(bytes(plan.values)).toBeLessThanOrEqual(usable);
        expect(plan.estimate.vram.devicePeakBytes).toBe(bytes(plan.values));
        expect(plan.changes.every(({ savesBytes }) => savesBytes >= 0)).toBe(true);
        expect(saved(plan)).toBe(bytes(values) - bytes(plan.values));
        rewrites += 1;
      }
    }
    expect(rewrites).toBeGreaterThan(20);
  });

  it('spends few estimates', () => {
    for (const share of [0.9, 0.5, 0.2, 0.08, 0.03]) {
      let estimates = 0;
      planRun(
        request(Math.floor(peak(heavy) * share), {
          values: heavy,
          ...allowing(...LEVER_CLASSES),
          estimate: (values) => {
            estimates += 1;
            return toyEstimate(values);
          },
        }),
      );
      expect(estimates).toBeLessThan(130);
    }
  });
});
