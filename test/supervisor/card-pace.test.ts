import { expect, it } from 'vitest';
import { pauseAfterCards } from '../../src/supervisor/card-pace.ts';

it.each([
  ['a quick tool in the first minute', 40, 8_000, 0],
  ['a slow tool in the first minute', 900, 59_999, 0],
  ['a quick tool later', 20, 61_000, 4_000],
  ['a tool that costs nothing', 0, 3_600_000, 0],
  ['a tool that hangs', 5_000, 3_600_000, 10_000],
])('cards are left alone after %s', (_, tookMs, runMs, pauseMs) => {
  expect(pauseAfterCards(tookMs, runMs)).toBe(pauseMs);
});
