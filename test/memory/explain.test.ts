import { describe, expect, it } from 'vitest';
import { estimateMemory, explainMemory, type MemoryExplanation } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const facts = factsOf();
const explain = (changes: Partial<PlanValues> = {}): MemoryExplanation => {
  const result = explainMemory(plan(changes), facts);
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value;
};
const inputsOf = (explanation: MemoryExplanation, term: string) =>
  explanation.terms.find((each) => each.term === term)!.inputs;

const PLANS: readonly Partial<PlanValues>[] = [
  {},
  { method: 'lora', lora: LORA, gradientCheckpointing: CHECKPOINTING },
  { objective: 'dpo', lossImpl: 'full' },
  { optim: 'galore_adamw', perDeviceTrainBatchSize: 1, maxLength: 24 },
  { distributed: { nodes: 1, processesPerNode: 4, strategy: 'zero3', offload: [] }, mixedPrecision: 'bf16' },
];

describe('explainMemory', () => {
  it.each(PLANS)('%j: is the estimate itself, its terms add up, each has a formula and a source', (changes) => {
    const explanation = explain(changes);
    const estimate = estimateMemory(plan(changes), facts);
    expect(estimate).toEqual({ ok: true, value: explanation.estimate });
    const { vram } = explanation.estimate;
    expect(explanation.terms.reduce((total, { bytes }) => total + bytes, 0)).toBe(vram.devicePeakBytes);
    for (const { formula, inputs, sources } of explanation.terms) {
      expect(formula.length).toBeGreaterThan(10);
      expect(Object.keys(inputs)).not.toHaveLength(0);
      expect(sources.every((source) => source.length > 5)).toBe(true);
    }
    const highest = Math.max(...explanation.phases.map(({ bytes }) => bytes));
    expect(highest).toBe(vram.allocatedPeakBytes);
    expect(explanation.peak.phase).toBe(vram.peakPhase);
  });

  it('says which layer and op is the peak', () => {
    const long = { lossImpl: 'fused', gradientCheckpointing: CHECKPOINTING, perDeviceTrainBatchSize: 8 } as const;
    const { peak } = explain({ ...long, method: 'lora', lora: { ...LORA, targetModules: ['down_proj'] } });
    expect(peak).toEqual({ phase: 'backward', where: 'layers 1 to 6', op: 'down_proj' });
    expect(explain({ perDeviceTrainBatchSize: 1, maxLength: 16, optim: 'adamw_torch' }).peak).toEqual({
      phase: 'optimizer',
      where: 'optimizer step',
      op: undefined,
    });
    expect(explain().peak).toMatchObject({ phase: 'backward', where: 'head and loss' });
  });

  it('puts in the numbers of this run', () => {
    const explanation = explain({ method: 'lora', lora: LORA, objective: 'dpo' });
    expect(inputsOf(explanation, 'weights')).toMatchObject({ bf16_parameters: facts.parameters });
    expect(inputsOf(explanation, 'activations')).toMatchObject({ rows: 6, max_length: 384, layers: 7 });
    expect(inputsOf(explanation, 'logits')).toMatchObject({ rows: 6, vocab_size: 30011 });
    const text = explanation.terms.find(({ term }) => term === 'logits')!.sources.join();
    expect(text).toContain('dpo_trainer.py');
    expect(
      explain()
        .terms.find(({ term }) => term === 'logits')!
        .sources.join(),
    ).not.toContain('dpo_trainer.py');
  });

  it('what cannot be estimated cannot be explained', () => {
    const result = explainMemory(plan({ method: 'lora' }), facts);
    expect(result.ok ? '' : result.error[0]!.code).toBe('missing-lora');
  });
});
