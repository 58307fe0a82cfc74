import { describe, expect, it } from 'vitest';
import { simulatedReserve } from '../../src/memory/allocator/oracle.ts';
import { estimateMemory } from '../../src/memory/index.ts';
import type { Distributed, PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const facts = factsOf();
const { parameters } = facts;

const vram = (strategy: Distributed['strategy'], changes: Partial<PlanValues> = {}, played = false) => {
  const distributed = { nodes: 1, processesPerNode: 8, strategy, offload: ['optimizer'] } as const;
  const values = plan({ gradientCheckpointing: CHECKPOINTING, distributed, ...changes });
  const result = estimateMemory(values, facts, {}, played ? simulatedReserve : undefined);
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value.vram;
};

/** Reserved beside allocated, bytes a parameter. */
const beside = (strategy: Distributed['strategy'], changes?: Partial<PlanValues>, played?: boolean): number => {
  const { reservedPeakBytes, allocatedPeakBytes } = vram(strategy, changes, played);
  return (reservedPeakBytes - allocatedPeakBytes) / parameters;
};

describe('what ZeRO-3 keeps from the allocator', () => {
  it.each([false, true])(
    'is one set of gathered layers and the gradients of three reductions (every layer played: %s)',
    (played) => {
      // Buckets and gathered layers are larger than this model: all of it, each time.
      const more = beside('zero3', {}, played) - beside('zero2', {}, played);
      expect(Math.abs(more - 2 * (1 + 3))).toBeLessThan(1.5);
    },
  );

  it('is one set of gathered layers where only adapters have gradients', () => {
    const lora = { method: 'lora', lora: LORA } as const;
    const more = beside('zero3', lora) - beside('zero2', lora);
    expect(more).toBeGreaterThan(1.5);
    expect(more).toBeLessThan(3);
  });
});

it('joins the gradients of a bucket once more before they are reduced', () => {
  const { communicationBuffers } = vram('zero3', { maxLength: 2048 }).terms;
  expect(Math.abs(communicationBuffers / parameters - 2 * (1 + 1 + 1))).toBeLessThan(0.1);
});
