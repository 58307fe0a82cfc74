import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planOf, readReferenceRows } from '../../bench/reference-rows.ts';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { factsOf, plan } from './plans.ts';

/** Two steps of a small model with the optimizers of galore_torch 1.0, apollo_torch 1.0.3, lomo_optim 0.1.1, schedulefree 1.4.1 and torch 2.13, traced like traced-steps.jsonl. */
const rows = readReferenceRows(join(import.meta.dirname, '../fixtures/memory/traced-optimizers.jsonl'));

describe('optimizers against traced steps', () => {
  it.each(rows.map((row) => [row.id, row] as const))('%s', (_, row) => {
    const estimate = estimateMemory(planOf(row), factsOf(row.config));
    if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    expect(estimate.value.vram.allocatedPeakBytes / row.peak_bytes).toBeGreaterThan(0.998);
    expect(estimate.value.vram.allocatedPeakBytes / row.peak_bytes).toBeLessThan(1.002);
    expect(estimate.value.vram.peakPhase).toBe(row.peak_phase);
  });
});

const facts = factsOf();
const estimate = (changes: Partial<PlanValues>): MemoryEstimate => {
  const result = estimateMemory(plan(changes), facts);
  if (!result.ok) throw new Error(result.error.map(({ message }) => message).join('; '));
  return result.value;
};
const states = (optim: string, changes: Partial<PlanValues> = {}): number =>
  estimate({ optim, ...changes }).vram.terms.optimizerStates;
const bytes = facts.parameters * 2;

describe('optimizer states by cause', () => {
  it('every name of transformers but those of other accelerators has a rule', () => {
    for (const optim of ['grokadamw', 'stable_adamw', 'galore_adamw_8bit', 'galore_adamw_8bit_layerwise', 'adamw_hf']) {
      expect(estimateMemory(plan({ optim }), facts).ok).toBe(true);
    }
    for (const optim of ['adamw_torch_xla', 'adamw_torch_npu_fused']) {
      expect(estimateMemory(plan({ optim }), facts).ok).toBe(false);
    }
  });

  it('a higher rank costs more, in all-linear more layers are projected', () => {
    const plain = states('galore_adamw');
    expect(states('galore_adamw', { optimArgs: 'rank=256, scale=0.5' })).toBeGreaterThan(plain);
    expect(states('galore_adamw', { optimTargetModules: 'all-linear' })).toBeLessThan(plain);
    expect(states('galore_adamw', { optimTargetModules: ['self_attn'] })).toBeGreaterThan(plain);
    expect(states('galore_adamw', { optimTargetModules: ['nothing_of_it'] })).toBeGreaterThanOrEqual(2 * bytes * 0.99);
    expect(states('galore_adamw_8bit')).toBeLessThan(plain);
  });

  it('layer-wise optimizers and LOMO hold no gradients, and are refused where transformers refuses them', () => {
    const short = { perDeviceTrainBatchSize: 1, maxLength: 16 };
    expect(estimate({ optim: 'lomo', ...short }).vram.terms.gradients).toBeLessThan(bytes / 3);
    expect(estimate({ optim: 'sgd', ...short }).vram.terms.gradients).toBeGreaterThan(bytes * 0.7);
    const refused = (changes: Partial<PlanValues>) =>
      estimateMemory(plan({ optim: 'galore_adamw_layerwise', ...changes }), facts);
    expect(refused({ gradientAccumulationSteps: 2 }).ok).toBe(false);
    const distributed = { nodes: 1, processesPerNode: 2, strategy: 'ddp', offload: [] } as const;
    expect(refused({ distributed }).ok).toBe(false);
    expect(estimateMemory(plan({ optim: 'galore_adamw', gradientAccumulationSteps: 2 }), facts).ok).toBe(true);
  });

  it('GrokAdamW keeps its states on the host', () => {
    expect(states('grokadamw')).toBe(0);
    expect(estimate({ optim: 'grokadamw' }).ram.terms.offloadedStates).toBeGreaterThanOrEqual(3 * bytes);
  });

  it('StableAdamW compensates 16-bit weights alone', () => {
    expect(states('stable_adamw')).toBeGreaterThan(3 * bytes);
    expect(states('stable_adamw', { dtype: 'fp32' })).toBeLessThan(2.01 * 2 * bytes);
  });

  it('momentum asked for in optim_args is a state', () => {
    expect(states('sgd', { optimArgs: 'momentum=0.9' })).toBeGreaterThanOrEqual(bytes);
    expect(states('sgd', { optimArgs: 'weight_decay=0.1' })).toBe(0);
    expect(states('rmsprop', { optimArgs: 'centered=True' })).toBeGreaterThan(1.9 * states('rmsprop'));
  });

  it('torchao takes blocks of 256 unless told otherwise', () => {
    expect(states('adamw_torch_4bit')).toBeLessThan(states('adamw_torch_8bit') * 0.6);
    expect(states('adamw_torch_4bit', { optimArgs: 'block_size=64' })).toBeGreaterThan(states('adamw_torch_4bit'));
  });
});
