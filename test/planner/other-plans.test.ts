import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, planRun } from '../../src/planner/index.ts';
import { request, toyEstimate, toyValues } from './toy.ts';

const values = toyValues({ perDeviceTrainBatchSize: 16, gradientAccumulationSteps: 2, attnImplementation: 'eager' });
const peak = toyEstimate(values);
const tight = peak.ok ? Math.floor(peak.value.vram.devicePeakBytes * 0.35) : 0;
const planned = (alternatives?: number) => {
  const plan = planRun(
    request(tight, { values, policy: DEFAULT_POLICY, ...(alternatives === undefined ? {} : { alternatives }) }),
  );
  if (plan.verdict !== 'rewrite') throw new Error(plan.verdict);
  return plan;
};

describe('other plans beside the best', () => {
  it('are named only when asked for', () => {
    expect(planned().alternatives).toBeUndefined();
    expect(planned(0).alternatives).toEqual([]);
  });

  it('all fit, keep the global batch, and differ in the levers they use', () => {
    const plan = planned(3);
    expect(plan.alternatives?.length).toBeGreaterThan(0);
    expect(plan.alternatives?.length).toBeLessThanOrEqual(3);
    const kinds = [plan, ...plan.alternatives!].map(({ changes }) =>
      changes.map(({ lever, to }) => `${lever} ${JSON.stringify(to)}`).join(),
    );
    expect(new Set(kinds).size).toBe(kinds.length);
    for (const { estimate, values: at, stepFactor } of plan.alternatives!) {
      expect(estimate.vram.devicePeakBytes).toBeLessThanOrEqual(tight);
      expect(at.perDeviceTrainBatchSize * at.gradientAccumulationSteps).toBe(32);
      expect(stepFactor).toBeGreaterThanOrEqual(1);
    }
  });

  it('do not change which plan is best', () => {
    expect(planned(3).values).toEqual(planned().values);
  });
});
