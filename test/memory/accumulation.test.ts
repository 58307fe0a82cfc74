import { describe, expect, it } from 'vitest';
import { estimateMemory } from '../../src/memory/index.ts';
import type { Distributed, PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const facts = factsOf();
const RANKS = 4;

const sharded = (strategy: Distributed['strategy']): Distributed => ({
  nodes: 1,
  processesPerNode: RANKS,
  strategy,
  offload: [],
});

const peak = (changes: Partial<PlanValues>): number => {
  const values = plan({ perDeviceTrainBatchSize: 1, gradientCheckpointing: CHECKPOINTING, ...changes });
  const result = estimateMemory(values, facts);
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value.vram.allocatedPeakBytes;
};

/** What four micro batches take more than one, in bytes a parameter. */
function more(changes: Partial<PlanValues>): number {
  return (peak({ ...changes, gradientAccumulationSteps: 4 }) - peak(changes)) / facts.parameters;
}

describe('gradients that earlier micro batches have left', () => {
  it.each(['fsdp1', 'hsdp', 'fsdp2'] as const)(
    'are whole under %s, which does not reduce them before the last',
    (strategy) => {
      const width = 2 * (1 - 1 / RANKS);
      expect(more({ distributed: sharded(strategy), optim: 'sgd' })).toBeGreaterThan(0.7 * width);
      expect(more({ distributed: sharded(strategy), optim: 'sgd' })).toBeLessThan(2);
    },
  );

  it('are shards where every micro batch is reduced', () => {
    const synced = more({ distributed: sharded('fsdp1'), optim: 'sgd', syncsEachMicroBatch: true });
    expect(synced).toBeLessThan(2 / RANKS + 0.01);
  });

  it('were shards under FSDP 2 before accelerate held the reduction back', () => {
    const versions = { torch: '2.6', transformers: '4.51', peft: '0.15', trl: '0.16' };
    expect(more({ distributed: sharded('fsdp2'), optim: 'sgd', versions })).toBeLessThan(2 / RANKS + 0.01);
    expect(more({ distributed: sharded('fsdp1'), optim: 'sgd', versions })).toBeGreaterThan(1);
  });

  it('are shards under ZeRO-3, which reduces them all', () => {
    expect(more({ distributed: sharded('zero3'), optim: 'sgd' })).toBeLessThan(2 / RANKS + 0.01);
  });

  it('are small where adapters alone are trained', () => {
    const adapter = { method: 'lora', lora: LORA, distributed: sharded('fsdp1') } as const;
    expect(more(adapter)).toBeLessThan(0.2);
  });
});

it('joins the gradients of embedding and head in one tensor before they are reduced', () => {
  const wide = factsOf({ ...SMALL_LLAMA, vocab_size: 400_000, num_hidden_layers: 1 });
  const values = plan({
    distributed: sharded('fsdp1'),
    optim: 'sgd',
    maxLength: 8,
    perDeviceTrainBatchSize: 1,
    gradientCheckpointing: CHECKPOINTING,
  });
  const result = estimateMemory(values, wide);
  if (!result.ok) throw new Error('refused');
  const root = 2 * 2 * 400_000 * SMALL_LLAMA.hidden_size;
  // The unit gathered, its gradients, and those joined; a fourth of the weights.
  const { allocatedPeakBytes: bytes } = result.value.vram;
  expect(bytes / root).toBeGreaterThan(3.2);
  expect(bytes / root).toBeLessThan(3.6);
});

it('says so, where it is so', () => {
  const said = (changes: Partial<PlanValues>): boolean => {
    const result = estimateMemory(plan({ distributed: sharded('fsdp1'), ...changes }), facts);
    return result.ok && result.value.assumptions.some((text) => /whole ones until then/.test(text));
  };
  expect(said({ gradientAccumulationSteps: 3 })).toBe(true);
  expect(said({ gradientAccumulationSteps: 3, syncsEachMicroBatch: true })).toBe(false);
  expect(said({ gradientAccumulationSteps: 3, distributed: sharded('ddp') })).toBe(false);
  expect(said({})).toBe(false);
});
