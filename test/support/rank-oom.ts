import { join } from 'node:path';
import { expect } from 'vitest';
import { isRunning, readRecordedPids } from './processes.ts';
import { makeSandbox, ROOT, type Sandbox } from './snug-cli.ts';

const SCRIPT = join(ROOT, 'test', 'fixtures', 'e2e', 'rank_train.py');
const STEPS = 8;
const MICRO_BATCH = 4;
/** `defaultTimings.fatalLineGraceMs` and `afterOomGraceMs`, and 5 s. */
const GONE_WITHIN_MS = 10_000 + 10_000 + 5_000;

export interface RankOom {
  readonly python: string;
  readonly launcher: 'torchrun' | 'accelerate';
  readonly ranks: number;
  readonly failsAtStep: number;
  readonly failingRank: number;
}

interface Result {
  readonly global_step: number;
  readonly samples: number;
  readonly batches: readonly number[];
  readonly weights: readonly number[];
}

function launchOf({ launcher, ranks }: RankOom): readonly string[] {
  const start =
    launcher === 'torchrun'
      ? ['torchrun', '--standalone', '--nproc-per-node', String(ranks)]
      : [
          // Without a GPU this starts as many ranks as asked for, on gloo; --cpu would start one.
          ...['accelerate', 'launch', '--multi_gpu', '--num_processes', String(ranks), '--num_machines', '1'],
          ...['--mixed_precision', 'no', '--dynamo_backend', 'no', '--main_process_port', '0'],
        ];
  return [...start, SCRIPT, '--max_steps', String(STEPS), '--gradient_accumulation_steps', '2'];
}

const resultOf = (sandbox: Sandbox, folder: string): Result =>
  JSON.parse(sandbox.read(join(folder, 'result.json'))) as Result;

/** What the same training comes to when nothing happens; trained once a launcher and number of ranks. */
const undisturbed = new Map<string, Promise<Result>>();
async function trainUndisturbed(scenario: RankOom): Promise<Result> {
  const sandbox = makeSandbox({ python: scenario.python });
  try {
    const launch = [...launchOf(scenario), '--per_device_train_batch_size', String(MICRO_BATCH)];
    const env = { SNUG_TEST_PIDS: join(sandbox.folder, 'pids') };
    const ended = await sandbox.startProgram([join(scenario.python, '..', launch[0]!), ...launch.slice(1)], env).ended;
    expect(ended.exitCode, ended.stderr).toBe(0);
    return resultOf(sandbox, 'out');
  } finally {
    sandbox.remove();
  }
}

/**
 * One rank prints an OOM and hangs, the others wait for it. Proves: the right kind, every rank gone in time, a retry from the last
 * checkpoint, and the same steps, global batches and weights as without all that.
 */
export async function failAndRecover(scenario: RankOom): Promise<void> {
  const { python, launcher, ranks, failsAtStep, failingRank } = scenario;
  const key = `${launcher}/${ranks}`;
  if (!undisturbed.has(key)) undisturbed.set(key, trainUndisturbed(scenario));
  const expected = await undisturbed.get(key)!;
  const sandbox = makeSandbox({ python });
  const told = `${launcher}, ${ranks} ranks, rank ${failingRank} at step ${failsAtStep}`;
  try {
    const pids = join(sandbox.folder, 'pids');
    const launch = [
      ...launchOf(scenario),
      ...['--per_device_train_batch_size', String(MICRO_BATCH), '--oom_from_batch', String(MICRO_BATCH)],
      ...['--oom_at_step', String(failsAtStep), '--oom_rank', String(failingRank)],
    ];
    const run = sandbox.start(['run', '--gpu', `24GiB:${ranks}`, '--', ...launch], { SNUG_TEST_PIDS: pids });
    await run.seen(new RegExp(`\\[rank${failingRank}\\]: torch\\.OutOfMemoryError`));
    const first = readRecordedPids(pids).slice(0, ranks);
    expect(first, told).toHaveLength(ranks);
    await expect
      .poll(() => first.filter(isRunning), { timeout: GONE_WITHIN_MS, interval: 100, message: told })
      .toEqual([]);
    const ended = await run.ended;
    expect(ended.exitCode, `${told}\n${ended.stderr}`).toBe(0);
    const { state, attempts } = sandbox.onlyRun();
    expect(attempts, told).toHaveLength(2);
    const kinds = (state as { attempts: { failure: { kind: string } | null; resumed_from: string | null }[] }).attempts;
    expect(kinds[0]!.failure?.kind, told).toBe('vram_capacity');
    const saved = 2 * Math.floor((failsAtStep - 1) / 2);
    if (saved === 0) expect(kinds[1]!.resumed_from, told).toBeNull();
    else expect(kinds[1]!.resumed_from, told).toContain(`checkpoint-${saved}`);
    const found = resultOf(sandbox, 'out');
    expect({ ...found, weights: [] }, told).toEqual({ ...expected, weights: [] });
    found.weights.forEach((weight, index) => {
      // Sums of smaller parts differ in their last bits.
      expect(weight, told).toBeCloseTo(expected.weights[index]!, 3);
    });
    expect(readRecordedPids(pids).filter(isRunning), told).toEqual([]);
    expect(sandbox.leftProcesses(), told).toEqual([]);
  } finally {
    sandbox.remove();
  }
}
