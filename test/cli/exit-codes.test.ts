import { expect, it } from 'vitest';
import { worstExitCode } from '../../src/cli/exit-codes.ts';

it.each([
  [[0, 10, 0], 10],
  [[10, 11], 11],
  [[11, 12, 10], 12],
  [[12, 3, 0], 3],
  [[0, 0], 0],
  [[], 0],
])('of %j the worst is %i', (codes, worst) => {
  expect(worstExitCode(codes)).toBe(worst);
});
