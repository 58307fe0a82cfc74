import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type Policy, planRun } from '../../src/planner/index.ts';
import { request, surroundings, toyEstimate, toyValues } from './toy.ts';

const values = toyValues({ perDeviceTrainBatchSize: 8, gradientAccumulationSteps: 1, optim: 'adamw_torch' });
const peak = toyEstimate(values);
const tight = peak.ok ? Math.floor(peak.value.vram.devicePeakBytes * 0.7) : 0;
const leversOf = (policy: Partial<Policy>): string[] => {
  const plan = planRun(
    request(tight, { values, policy: { ...DEFAULT_POLICY, ...policy }, surroundings: surroundings() }),
  );
  return [...new Set(plan.changes.map(({ lever }) => lever))];
};

describe('what may be pulled', () => {
  it('a forbidden lever is not, the others are', () => {
    const [first] = leversOf({});
    expect(first).toBeDefined();
    const others = leversOf({ forbid: [first!] });
    expect(others).not.toContain(first);
    expect(others.length).toBeGreaterThan(0);
  });

  it('a whole class is forbidden by its name', () => {
    expect(leversOf({ forbid: ['free', 'exact', 'near', 'qlora'] })).toEqual([]);
  });

  it('a single lever is allowed without its class', () => {
    expect(leversOf({ allow: ['micro-batch'] })).toEqual(['micro-batch']);
  });

  it('a setting that is kept stays, whatever lever would move it', () => {
    expect(leversOf({ allow: ['micro-batch'], keep: ['perDeviceTrainBatchSize'] })).toEqual([]);
  });
});
