import { beforeAll, describe, it } from 'vitest';
import { killAndContinue } from '../support/kill-snug.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { ensureBuilt, SETUP_TIMEOUT_MS } from '../support/snug-cli.ts';

const MOMENTS = Number(process.env.SNUG_SOAK_MOMENTS ?? 200);
const AT_ONCE = 20;

const random = randomNumbers(20_260_101);
const moments = Array.from({ length: MOMENTS }, () => Math.round(random.next().value * 1800));
const groups = Array.from({ length: Math.ceil(MOMENTS / AT_ONCE) }, (_, at) =>
  moments.slice(at * AT_ONCE, (at + 1) * AT_ONCE),
);

describe.skipIf(process.platform !== 'linux')(`snug is killed itself, at ${MOMENTS} random moments of a run`, () => {
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);

  it.each(groups.map((group, at) => ({ part: at + 1, group })))('part $part', async ({ group }) => {
    for (const moment of group) await killAndContinue(moment);
  });
});
