import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planOf, readReferenceRows } from '../../bench/reference-rows.ts';
import { estimateMemory } from '../../src/memory/index.ts';
import { factsOf } from './plans.ts';

/**
 * Steps of small models of every architecture, traced op by op with transformers 5.17, peft 0.21 and torch 2.13 without
 * allocating (fake tensors), storages rounded to 512 bytes. Counters and positions that a model makes beside its layers are
 * not described, hence the tolerance.
 */
const rows = [
  'traced-steps',
  'traced-encoders',
  'traced-vision',
  'traced-experts',
  'traced-lineages',
  'traced-unseen',
].flatMap((name) => readReferenceRows(join(import.meta.dirname, `../fixtures/memory/${name}.jsonl`)));

describe('against traced steps', () => {
  it.each(rows.map((row) => [row.id, row] as const))('%s', (_, row) => {
    const estimate = estimateMemory(planOf(row), factsOf(row.config));
    if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    const { params, vram } = estimate.value;
    expect(params).toEqual({ total: row.params, trainable: row.trainable });
    expect(vram.allocatedPeakBytes / row.peak_bytes).toBeGreaterThan(0.985);
    expect(vram.allocatedPeakBytes / row.peak_bytes).toBeLessThan(1.01);
    expect(vram.peakPhase).toBe(row.peak_phase);
  });
});
