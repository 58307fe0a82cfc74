import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const POCKET = join(ROOT, 'examples', 'pocket', 'train.py');
const PATIENT = join(ROOT, 'test', 'fixtures', 'e2e', 'patient.py');

describe.skipIf(process.platform === 'win32')('signals to snug', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
  });
  afterEach(() => sandbox.remove());

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    '%s ends a trainer that does not handle it: exit code %i, no retry, nothing left',
    async (signal, exitCode) => {
      const flags = ['--max_steps', '2000', '--per_device_train_batch_size', '2', '--output_dir', 'out'];
      const run = sandbox.start(['run', '--', 'python3', POCKET, ...flags]);
      await run.seen(/ 5\/2000 /);
      run.signal(signal);
      const ended = await run.ended;
      expect(ended.exitCode).toBe(exitCode);
      expect(sandbox.onlyRun().attempts).toHaveLength(1);
      expect(sandbox.leftProcesses()).toEqual([]);
    },
  );

  it.each([['SIGINT'], ['SIGTERM']] as const)(
    '%s reaches a trainer that saves first once, and its own exit code is ours',
    async (signal) => {
      const run = sandbox.start(['run', '--', 'python3', PATIENT, '--exit_code', '42']);
      await run.seen(/waiting/);
      run.signal(signal);
      const ended = await run.ended;
      expect(ended.stdout).toContain('saving, told 1 time(s)');
      expect(ended.exitCode).toBe(42);
      expect(sandbox.onlyRun().attempts).toHaveLength(1);
      expect(sandbox.leftProcesses()).toEqual([]);
    },
  );

  it.each([
    ['SIGTERM', 143],
    ['SIGUSR1', 138],
  ] as const)('%s before there is a trainer: none is started', async (signal, exitCode) => {
    // The card is looked at once more before the start; this one takes its time to answer.
    sandbox.write('slow/nvidia-smi', '#!/bin/sh\ntouch asked\nuntil test -e answer; do sleep 0.05; done\nexit 9\n');
    chmodSync(join(sandbox.folder, 'slow', 'nvidia-smi'), 0o755);
    const path = `${join(sandbox.folder, 'slow')}:${sandbox.env.PATH}`;
    const run = sandbox.start(['run', '--gpu', '24GiB', '--', 'touch', 'started'], { PATH: path });
    await expect.poll(() => sandbox.exists('asked'), { timeout: 60_000, interval: 20 }).toBe(true);
    run.signal(signal);
    sandbox.write('answer', '');
    expect((await run.ended).exitCode).toBe(exitCode);
    expect(sandbox.exists('started')).toBe(false);
    expect(sandbox.leftProcesses()).toEqual([]);
  });

  it('a trainer that does not listen is ended by insisting, and not before', async () => {
    const run = sandbox.start(['run', '--', 'python3', PATIENT, '--stubborn']);
    await run.seen(/waiting/);
    run.signal('SIGINT');
    await run.seen(/heard, going on/);
    // One Ctrl-C is a request: the trainer may be writing its checkpoint.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(sandbox.leftProcesses().length).toBeGreaterThanOrEqual(2);
    const insist = setInterval(() => run.signal('SIGINT'), 1_000);
    const ended = await run.ended.finally(() => clearInterval(insist));
    expect(ended.milliseconds).toBeLessThan(20_000);
    expect(ended.exitCode).toBeGreaterThan(128);
    expect(sandbox.onlyRun().attempts).toHaveLength(1);
    expect(sandbox.leftProcesses()).toEqual([]);
  });
});
