import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planOf, type ReferenceRow, readReferenceRows } from '../../bench/reference-rows.ts';
import { estimateMemory } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, plan } from './plans.ts';

type Row = Omit<ReferenceRow, 'peft'> & {
  readonly peft: 'prompt' | 'prefix';
  readonly virtual: number;
  readonly projection?: number;
};

/** Steps of PEFT 0.21's prompt and prefix tuning, traced like traced-steps.jsonl. */
const rows = readReferenceRows(
  join(import.meta.dirname, '../fixtures/memory/traced-virtual-tokens.jsonl'),
) as unknown as readonly Row[];

const valuesOf = (row: Row): PlanValues => ({
  ...planOf(row as unknown as ReferenceRow),
  method: row.peft === 'prompt' ? 'prompt_tuning' : 'prefix_tuning',
  lora: null,
  promptTuning: { numVirtualTokens: row.virtual, projectionHiddenSize: row.projection },
});

describe('virtual tokens against traced steps', () => {
  it.each(rows.map((row) => [row.id, row] as const))('%s', (_, row) => {
    const estimate = estimateMemory(valuesOf(row), factsOf(row.config));
    if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    const { params, vram } = estimate.value;
    expect(params.trainable).toBe(row.trainable);
    expect(vram.allocatedPeakBytes / row.peak_bytes).toBeGreaterThan(0.996);
    expect(vram.allocatedPeakBytes / row.peak_bytes).toBeLessThan(1.003);
    expect(vram.peakPhase).toBe(row.peak_phase);
  });
});

describe('virtual tokens', () => {
  const facts = factsOf();
  const codes = (changes: Partial<PlanValues>): string[] => {
    const result = estimateMemory(plan(changes), facts);
    return result.ok ? [] : result.error.map(({ code }) => code);
  };
  const promptTuning = { numVirtualTokens: 30, projectionHiddenSize: undefined };

  it('must be said, and a prefix does not go with checkpointing', () => {
    expect(codes({ method: 'prompt_tuning' })).toEqual(['missing-prompt-tuning']);
    expect(codes({ method: 'prefix_tuning', promptTuning, gradientCheckpointing: CHECKPOINTING })).toEqual([
      'bad-setting',
    ]);
    expect(codes({ method: 'prompt_tuning', promptTuning, gradientCheckpointing: CHECKPOINTING })).toEqual([]);
  });
});
