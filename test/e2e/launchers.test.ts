import { beforeAll, describe, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { failAndRecover } from '../support/rank-oom.ts';
import { ensureBuilt, SETUP_TIMEOUT_MS, TRAINER_TIMEOUT_MS } from '../support/snug-cli.ts';

describe.skipIf(process.platform !== 'linux')('a rank that is out of memory and hangs', () => {
  let python: string;
  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
  }, SETUP_TIMEOUT_MS);

  it.each([
    { launcher: 'torchrun', ranks: 4, failsAtStep: 6, failingRank: 3 },
    { launcher: 'accelerate', ranks: 2, failsAtStep: 4, failingRank: 0 },
  ] as const)(
    'under $launcher with $ranks ranks costs the steps since the last checkpoint, no more',
    async (scenario) => {
      await failAndRecover({ python, ...scenario });
    },
    TRAINER_TIMEOUT_MS,
  );
});
