import { beforeAll, describe, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { randomNumbers } from '../support/random-numbers.ts';
import { failAndRecover } from '../support/rank-oom.ts';
import { ensureBuilt, SETUP_TIMEOUT_MS } from '../support/snug-cli.ts';

const ROUNDS = Number(process.env.SNUG_SOAK_ROUNDS ?? 30);

describe.skipIf(process.platform !== 'linux')('a rank that is out of memory at a random step, and hangs', () => {
  let python: string;
  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
  }, SETUP_TIMEOUT_MS);

  it(`${ROUNDS} times in a row, under torchrun and accelerate, with 2 and 4 ranks`, async () => {
    const random = randomNumbers(20_260_202);
    const below = (limit: number): number => Math.floor(random.next().value * limit);
    for (let round = 0; round < ROUNDS; round++) {
      const ranks = round % 4 < 2 ? 2 : 4;
      const launcher = round % 2 === 0 ? 'torchrun' : 'accelerate';
      await failAndRecover({ python, launcher, ranks, failsAtStep: 1 + below(8), failingRank: below(ranks) });
    }
  });
});
