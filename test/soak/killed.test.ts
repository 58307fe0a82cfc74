import { beforeAll, describe, it } from 'vitest';
import { killAndContinue } from '../support/kill-snug.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { ensureBuilt, SETUP_TIMEOUT_MS } from '../support/snug-cli.ts';

const MOMENTS = Number(process.env.SNUG_SOAK_MOMENTS ?? 200);

describe.skipIf(process.platform !== 'linux')('snug is killed itself', () => {
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);

  it(`at ${MOMENTS} random moments of a run`, async () => {
    const random = randomNumbers(20_260_101);
    for (let moment = 0; moment < MOMENTS; moment++) await killAndContinue(Math.round(random.next().value * 1800));
  });
});
