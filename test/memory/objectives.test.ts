import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planOf, type ReferenceRow, readReferenceRows } from '../../bench/reference-rows.ts';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { factsOf, LORA, plan } from './plans.ts';

/** What a row says beside the fields of a plain step. */
interface ObjectiveRow extends ReferenceRow {
  readonly objective?: PlanValues['objective'];
  readonly labels?: number;
  readonly precompute?: boolean;
  readonly smoothing?: boolean;
  readonly prompt?: number;
}

/**
 * Two steps of a small model through the losses of TRL 1.13's trainers (`_compute_loss`, reference model included) and the
 * Trainer's label smoothing, traced like traced-steps.jsonl; every row full, half of the answers chosen.
 */
const rows = readReferenceRows(
  join(import.meta.dirname, '../fixtures/memory/traced-objectives.jsonl'),
) as readonly ObjectiveRow[];

function valuesOf(row: ObjectiveRow): PlanValues {
  const completion = { maxPromptLength: row.prompt ?? 0, maxCompletionLength: row.seq - (row.prompt ?? 0) };
  return {
    ...planOf(row),
    objective: row.objective ?? 'clm',
    attentionMask: row.objective !== undefined,
    precomputeRefLogProbs: row.precompute === true,
    labelSmoothingFactor: row.smoothing ? 0.1 : 0,
    ...(row.prompt === undefined ? {} : { generation: { ...GENERATION, ...completion } }),
  };
}

const GENERATION = {
  numGenerations: 4,
  maxPromptLength: 96,
  maxCompletionLength: 288,
  engine: 'vllm_server',
  vllmGpuMemoryUtilization: 0.4,
  vllmEnableSleepMode: false,
  beta: 0,
} as const;

describe('objectives against traced steps', () => {
  it.each(rows.map((row) => [row.id, row] as const))('%s', (_, row) => {
    const facts = factsOf(row.labels === undefined ? row.config : { ...row.config, num_labels: row.labels });
    const estimate = estimateMemory(valuesOf(row), facts);
    if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    const { params, vram } = estimate.value;
    expect(params).toEqual({ total: row.params, trainable: row.trainable });
    expect(vram.allocatedPeakBytes / row.peak_bytes).toBeGreaterThan(0.997);
    expect(vram.allocatedPeakBytes / row.peak_bytes).toBeLessThan(1.004);
  });
});

const facts = factsOf();
const CARD = { capacityBytes: 24 * 2 ** 30 };
const estimate = (changes: Partial<PlanValues>, device = {}): MemoryEstimate => {
  const result = estimateMemory(plan(changes), facts, device);
  if (!result.ok) throw new Error(result.error.map(({ message }) => message).join('; '));
  return result.value;
};

describe('generation', () => {
  const grpo = { objective: 'grpo', generation: { ...GENERATION, engine: 'transformers' } } as const;

  it('holds keys and values of every row of the step', () => {
    const few = estimate({ ...grpo, gradientAccumulationSteps: 1 });
    const many = estimate({ ...grpo, gradientAccumulationSteps: 64, perDeviceTrainBatchSize: 8 });
    const cache = 2 * 7 * (8 * 64) * 4 * 64 * 384 * 2;
    expect(many.vram.allocatedPeakBytes - few.vram.allocatedPeakBytes).toBeGreaterThan(cache * 0.5);
    expect(many.assumptions.some((text) => text.includes('generated at once'))).toBe(true);
  });

  it('a colocated vLLM is a part of its own, and a server is not there', () => {
    const colocated = { ...grpo, generation: { ...GENERATION, engine: 'vllm_colocate' } } as const;
    const share = Math.round(CARD.capacityBytes * 0.4);
    const with_ = estimate(colocated, CARD).vram;
    const without = estimate({ ...grpo, generation: GENERATION }, CARD).vram;
    expect(with_.terms.inferenceEngine).toBe(share);
    expect(with_.allocatedPeakBytes - without.allocatedPeakBytes).toBe(share);
    const asleep = estimate({ ...colocated, generation: { ...colocated.generation, vllmEnableSleepMode: true } }, CARD);
    expect(asleep.vram.allocatedPeakBytes).toBeLessThan(with_.allocatedPeakBytes);
    const unknown = estimateMemory(plan(colocated), facts);
    expect(unknown.ok ? '' : unknown.error[0]!.code).toBe('unknown-card');
  });

  it('a KL term needs the weights of a reference in a full run alone', () => {
    const kl = { ...GENERATION, beta: 0.04 };
    const weights = (changes: Partial<PlanValues>): number => estimate(changes).vram.terms.weights;
    expect(weights({ objective: 'rloo', generation: kl })).toBeGreaterThan(
      1.9 * weights({ objective: 'rloo', generation: GENERATION }),
    );
    const lora = { objective: 'rloo', method: 'lora', lora: LORA } as const;
    expect(weights({ ...lora, generation: kl })).toBe(weights({ ...lora, generation: GENERATION }));
  });
});

describe('classifiers', () => {
  it('a tied head is not there, and the scoring layer has as many rows as labels', () => {
    const tied = factsOf({ ...{ model_type: 'gpt2', n_layer: 2 }, num_labels: 7 });
    const result = estimateMemory(plan({ objective: 'classification' }), tied);
    expect(result.ok && result.value.params.total - tied.parameters).toBe(7 * 768);
  });
});

describe('evaluation', () => {
  it('a Liger loss of the plain Trainer makes all logits in evaluation, TRL’s does not', () => {
    const fused = { lossImpl: 'fused', eval: true, perDeviceEvalBatchSize: 32, perDeviceTrainBatchSize: 1 } as const;
    const logits = 32 * 384 * 30011;
    expect(estimate({ ...fused, objective: 'clm' }).vram.allocatedPeakBytes).toBeGreaterThan(logits * 8);
    expect(estimate({ ...fused, objective: 'sft' }).vram.allocatedPeakBytes).toBeLessThan(
      estimate({ ...fused, objective: 'clm' }).vram.allocatedPeakBytes - logits * 4,
    );
  });
});
