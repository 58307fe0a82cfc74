import { beforeAll, describe, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { randomNumbers } from '../support/random-numbers.ts';
import { failAndRecover } from '../support/rank-oom.ts';
import { ensureBuilt, SETUP_TIMEOUT_MS } from '../support/snug-cli.ts';

const ROUNDS = Number(process.env.SNUG_SOAK_ROUNDS ?? 30);

const random = randomNumbers(20_260_202);
const below = (limit: number): number => Math.floor(random.next().value * limit);
/** torchrun and accelerate in turn, two rounds with 2 ranks, two with 4. */
const SCENARIOS = Array.from({ length: ROUNDS }, (_, at) => {
  const ranks = at % 4 < 2 ? 2 : 4;
  const launcher = at % 2 === 0 ? ('torchrun' as const) : ('accelerate' as const);
  return { round: at + 1, launcher, ranks, failsAtStep: 1 + below(8), failingRank: below(ranks) };
});

describe.skipIf(process.platform !== 'linux')('a rank that is out of memory at a random step, and hangs', () => {
  let python: string;
  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
  }, SETUP_TIMEOUT_MS);

  it.each(SCENARIOS)(
    'round $round: rank $failingRank of $ranks under $launcher, at step $failsAtStep',
    async (scenario) => {
      await failAndRecover({ python, ...scenario });
    },
  );
});
