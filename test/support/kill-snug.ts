import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { makeSandbox, ROOT, type Sandbox } from './snug-cli.ts';

const POCKET = join(ROOT, 'examples', 'pocket', 'train.py');
const STEPS = 12;
/** From SIGTERM to SIGKILL in these runs, seconds. */
const GRACE = 2;

const launch = [
  ...['run', '--gpu', '24GiB', '--grace', String(GRACE), '--', 'python3', POCKET, '--max_steps', String(STEPS)],
  ...[
    '--save_steps',
    '4',
    '--per_device_train_batch_size',
    '2',
    '--output_dir',
    'out',
    '--pocket_step_seconds',
    '0.03',
  ],
];

/** Every JSON file of every run folder, parsed: a half-written one throws. */
function readRuns(sandbox: Sandbox): void {
  const runs = join(sandbox.folder, '.snug', 'runs');
  if (!sandbox.exists(join('.snug', 'runs'))) return;
  for (const name of readdirSync(runs, { recursive: true, encoding: 'utf8' })) {
    if (/(?:run|continue|command|changes|outcome)\.json$/.test(name))
      JSON.parse(readFileSync(join(runs, name), 'utf8'));
  }
}

/**
 * Kills snug `afterMs` after its start with SIGKILL, and proves that its run folder can be read, that nothing of the run is left after
 * the grace and 5 s, and that `--continue` brings the run to the end it would have had.
 */
export async function killAndContinue(afterMs: number): Promise<void> {
  const sandbox = makeSandbox();
  try {
    const run = sandbox.start(launch);
    const timer = setTimeout(() => run.signal('SIGKILL'), afterMs);
    const { signal } = await run.ended;
    clearTimeout(timer);
    readRuns(sandbox);
    await expect
      .poll(() => sandbox.leftProcesses(), {
        timeout: (GRACE + 5) * 1000,
        interval: 50,
        message: `killed after ${afterMs} ms`,
      })
      .toEqual([]);
    if (signal !== 'SIGKILL') return;
    readRuns(sandbox);
    const begun =
      sandbox.exists('.snug') &&
      readdirSync(join(sandbox.folder, '.snug'), { recursive: true, encoding: 'utf8' }).some((name) =>
        name.endsWith('continue.json'),
      );
    const again = begun ? await sandbox.run(['run', '--continue']) : await sandbox.run(launch);
    const finished = again.stderr.includes('finished well');
    expect(again.exitCode, `killed after ${afterMs} ms\n${again.stderr}`).toBe(finished ? 3 : 0);
    // A kill in the middle of the first save leaves a checkpoint that is not whole, and nothing is written over.
    const over = /starting over into (\S+): no complete checkpoint/.exec(again.stderr.replaceAll(/\n *snug: +/g, ' '));
    const results = JSON.parse(sandbox.read(join(over?.[1] ?? 'out', 'train_results.json'))) as {
      global_step: number;
      samples_seen: number;
    };
    expect(results).toMatchObject({ global_step: STEPS, samples_seen: STEPS * 2 });
    expect(sandbox.leftProcesses()).toEqual([]);
  } finally {
    sandbox.remove();
  }
}
