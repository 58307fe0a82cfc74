import { describe, expect, it } from 'vitest';
import { globalBatchSize } from '../../src/spec/index.ts';
import { CARDS, type Cell, cellName, compareWithEnumeration, MODELS, NAMED_LEVERS, requestOf, STARTS } from './grid.ts';

/** A few cells of the grid, far apart; `npm run test:soak` goes through all of them. */
const SAMPLE: readonly Cell[] = Array.from({ length: 14 }, (_, index) => ({
  model: (index * 5 + 1) % MODELS.length,
  start: index % STARTS.length,
  card: (index * 3 + 2) % CARDS.length,
}));

describe('the plan for a real model on a real card', () => {
  it.each(SAMPLE.map((cell) => [cellName(cell), cell] as const))('%s: the best there is', (_, cell) => {
    const request = requestOf(cell, NAMED_LEVERS);
    const { plan, found, best, combinations } = compareWithEnumeration(request);
    expect(combinations).toBeLessThanOrEqual(2000);
    expect(found).toEqual(best);
    expect(globalBatchSize(plan.values)).toBe(globalBatchSize(request.values));
  });

  it('is not always the same verdict', () => {
    const verdicts = SAMPLE.map((cell) => compareWithEnumeration(requestOf(cell, ['micro-batch'])).plan.verdict);
    expect(new Set(verdicts).size).toBeGreaterThan(1);
  });
});
