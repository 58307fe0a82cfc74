import { expect, it } from 'vitest';
import { estimateMemory } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, plan } from './plans.ts';

const vram = (strategy: PlanValues['distributed']['strategy'], gradientAccumulationSteps: number) => {
  const values = plan({
    gradientAccumulationSteps,
    gradientCheckpointing: CHECKPOINTING,
    distributed: { nodes: 1, processesPerNode: 2, strategy, offload: ['optimizer'] },
  });
  const result = estimateMemory(values, factsOf());
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value.vram;
};

it('leave no gap in what is reserved, however many micro batches make a step', () => {
  const [one, two] = [vram('zero1', 1), vram('zero1', 2)];
  expect(one.terms.fragmentation).toBeLessThanOrEqual(two.terms.fragmentation * 1.25);
  expect(one.terms.gradients).toBe(0);
});
