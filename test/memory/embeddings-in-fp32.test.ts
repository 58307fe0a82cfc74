import { expect, it } from 'vitest';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import { planParameters } from '../../src/memory/parameters.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { factsOf, plan, SMALL_LLAMA } from './plans.ts';

const estimate = (changes: Partial<PlanValues>, config = {}): MemoryEstimate => {
  const result = estimateMemory(plan({ mixedPrecision: 'bf16', ...changes }), factsOf({ ...SMALL_LLAMA, ...config }));
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value;
};

const { hidden_size, vocab_size, num_hidden_layers } = SMALL_LLAMA;
const norms = hidden_size * (2 * num_hidden_layers + 1);
const table = hidden_size * vocab_size;

it.each([
  ['untied', {}, 2 * table + norms],
  ['tied', { tie_word_embeddings: true }, table + norms],
])('%s embeddings, head and norms take 4 bytes where layers take 2, and the optimizer follows', (_, config, outer) => {
  const [plain, wide] = [estimate({}, config), estimate({ embeddingsInFp32: true }, config)];
  const bytesOf = (values: Partial<PlanValues>): number =>
    planParameters(factsOf({ ...SMALL_LLAMA, ...config }).description, plan(values)).residentBytes;
  expect(bytesOf({ embeddingsInFp32: true }) - bytesOf({})).toBe(2 * outer);
  // AdamW's two states follow the parameter; a step counter a tensor stays.
  const states = wide.vram.terms.optimizerStates - plain.vram.terms.optimizerStates;
  expect(Math.abs(states - 4 * outer)).toBeLessThan(2 ** 20);
  expect(wide.vram.allocatedPeakBytes - plain.vram.allocatedPeakBytes).toBeGreaterThan(6 * outer);
  expect(wide.params).toEqual(plain.params);
});

it('makes the stream between the layers fp32, as an fp32 table does', () => {
  const at = (maxLength: number, embeddingsInFp32: boolean): number =>
    estimate({ maxLength, embeddingsInFp32 }).vram.terms.activations;
  const grown = (wide: boolean): number => at(768, wide) - at(384, wide);
  expect(grown(true)).toBeGreaterThan(1.1 * grown(false));
});

it('changes nothing where everything is fp32 already', () => {
  const peak = (embeddingsInFp32: boolean): number =>
    estimate({ dtype: 'fp32', embeddingsInFp32 }).vram.allocatedPeakBytes;
  expect(peak(true)).toBe(peak(false));
});
