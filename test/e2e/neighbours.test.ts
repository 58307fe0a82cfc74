import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const POCKET = join(ROOT, 'examples', 'pocket', 'train.py');

describe.skipIf(process.platform !== 'linux')('a second run', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  afterEach(() => {
    const left = sandbox.leftProcesses();
    sandbox.remove();
    expect(left).toEqual([]);
  });

  const train = (out: string, steps: number): string[] => [
    ...['run', '--mode', 'warn', '--', 'python3', POCKET, '--max_steps', String(steps)],
    ...['--per_device_train_batch_size', '2', '--output_dir', out],
  ];

  it.each([
    ['into the same output folder', {}, 'results', /same-output-folder.*\n?.*process \d+/],
    [
      'on the same card',
      { gpus: [{ name: 'NVIDIA RTX A5000', total: 24564 }] },
      'elsewhere',
      /same-card.*\n?.*process \d+/,
    ],
  ])('%s is told about the first, and only while that runs', async (_, options, out, says) => {
    sandbox = makeSandbox(options);
    const first = sandbox.start(train('results', 100_000));
    await first.seen(/ 3\/100000 /);
    const second = await sandbox.run(train(out, 1));
    expect(second.stderr).toMatch(says);
    first.signal('SIGTERM');
    await first.ended;
    expect((await sandbox.run(train(out, 1))).stderr).not.toMatch(says);
  });
});
