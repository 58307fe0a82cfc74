import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { killAndContinue } from '../support/kill-snug.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const PATIENT = join(ROOT, 'test', 'fixtures', 'e2e', 'patient.py');
const MOMENTS = 20;

describe.skipIf(process.platform !== 'linux')('snug is killed itself', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
  });
  afterEach(() => sandbox.remove());

  it(`at ${MOMENTS} random moments: the folder is whole, nothing is left, --continue finishes the run`, async () => {
    const seed = Date.now();
    const random = randomNumbers(seed);
    // Start-up, every state of the run, and its end.
    const moments = Array.from({ length: MOMENTS }, () => Math.round(random.next().value * 1500));
    for (let at = 0; at < MOMENTS; at += 2) {
      await Promise.all(moments.slice(at, at + 2).map((ms) => killAndContinue(ms)));
    }
  });

  it('gives the trainer SIGTERM and the time to save, and keeps what it says', async () => {
    const run = sandbox.start(['run', '--', 'python3', PATIENT]);
    await run.seen(/waiting/);
    run.signal('SIGKILL');
    await run.ended;
    await expect.poll(() => sandbox.leftProcesses(), { timeout: 20_000, interval: 50 }).toEqual([]);
    const [attempt] = sandbox.onlyRun().attempts;
    expect(attempt!.log).toBe('out| waiting\nout| saving, told 1 time(s)\n');
  });

  it('kills a trainer that does not listen once the grace is over', async () => {
    const run = sandbox.start(['run', '--grace', '1', '--', 'python3', PATIENT, '--stubborn']);
    await run.seen(/waiting/);
    run.signal('SIGKILL');
    await run.ended;
    await expect.poll(() => sandbox.leftProcesses(), { timeout: 6_000, interval: 50 }).toEqual([]);
    expect(sandbox.onlyRun().attempts[0]!.log).toContain('heard, going on');
  });

  it('refuses to continue a run that goes on, and one whose command held a secret', async () => {
    const secret = ['--hub_token', 'aVerySecretWord'];
    const run = sandbox.start(['run', '--grace', '1', '--', 'python3', PATIENT, '--exit_code', '3']);
    await run.seen(/waiting/);
    const early = await sandbox.run(['run', '--continue']);
    expect(early.exitCode).toBe(3);
    expect(early.stderr).toMatch(/this run still goes on: snug is process \d+/);
    run.signal('SIGKILL');
    await run.ended;
    await expect.poll(() => sandbox.leftProcesses(), { timeout: 20_000, interval: 50 }).toEqual([]);

    const other = sandbox.start(['run', '--', 'sh', '-c', 'echo wait$((40 + 2)); sleep 60', ...secret]);
    await other.seen(/wait42/);
    other.signal('SIGKILL');
    await other.ended;
    await expect.poll(() => sandbox.leftProcesses(), { timeout: 20_000, interval: 50 }).toEqual([]);
    const blind = await sandbox.run(['run', '--continue']);
    expect(blind.exitCode).toBe(3);
    expect(blind.stderr).toMatch(/holds a secret/);
    expect(blind.stderr).toMatch(/snug run --continue\s.*-- COMMAND/s);
  });

  it('--continue says so where there is nothing to continue', async () => {
    const ended = await sandbox.run(['run', '--continue']);
    expect(ended.exitCode).toBe(3);
    expect(ended.stderr).toMatch(/there is no run to continue/);
  });
});
