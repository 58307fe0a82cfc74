import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { isRunning, readRecordedPids } from '../support/processes.ts';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';
import { addTinyModel } from '../support/tiny-model.ts';

const SCRIPT = join(ROOT, 'test', 'fixtures', 'e2e', 'hf_train.py');

/** What hf_train.py says it runs with. */
interface Said {
  readonly microBatch: number;
  readonly accumulation: number;
  readonly resume: string;
}

const saidIn = (log: string): Said => {
  const match = /per_device_train_batch_size=(\d+) gradient_accumulation_steps=(\d+) resume=(\S+)/.exec(log);
  if (!match) throw new Error(`hf_train.py did not say what it runs with:\n${log}`);
  return { microBatch: Number(match[1]), accumulation: Number(match[2]), resume: match[3]! };
};

/** Steps that a log entry was printed for, by its loss line (`logging_steps 1`). */
const stepsIn = (log: string): number => log.split("{'loss':").length - 1;

describe('a transformers Trainer that runs out of device memory at step 5', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let python: string;
  let sandbox: Sandbox;

  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
  }, SETUP_TIMEOUT_MS);
  beforeEach(async () => {
    sandbox = makeSandbox({ python });
    await addTinyModel(sandbox, python);
  }, SETUP_TIMEOUT_MS);
  afterEach(() => sandbox.remove());

  const flags = (microBatch: number, maxLength: number): string[] => [
    ...['--model_name_or_path', 'model', '--train_file', 'data/train.jsonl', '--output_dir', 'out'],
    ...['--per_device_train_batch_size', String(microBatch), '--gradient_accumulation_steps', '2'],
    ...['--max_length', String(maxLength), '--max_steps', '8', '--save_steps', '2', '--logging_steps', '1'],
    ...['--report_to', 'none', '--use_cpu', '--oom_at_step', '5', '--oom_from_batch', String(microBatch)],
  ];
  const state = (): { global_step: number } => JSON.parse(sandbox.read('out/trainer_state.json'));

  /** `--gpu` and the allocator's figures for a card on which the launch fits by its estimate, with a little to spare. */
  const cardThatFits = async (
    launch: readonly string[],
    count: string,
  ): Promise<{ gpu: string; figures: string[] }> => {
    const { stdout } = await sandbox.run(['check', '--json', '--gpu', `80GiB${count}`, '--', ...launch]);
    const { vram } = JSON.parse(stdout).estimate;
    const [card, context] = [vram.device_peak_bytes * 1.15, vram.terms.cuda_context].map((bytes) =>
      Math.round(bytes / 2 ** 20),
    );
    return {
      gpu: `${card}MiB${count}`,
      figures: ['--oom_card_mib', String(card), '--oom_context_mib', String(context)],
    };
  };

  const expectRetriedOnce = (microBatch: number, ranks: number) => {
    const { attempts } = sandbox.onlyRun();
    expect(attempts).toHaveLength(2);
    const [first, second] = attempts.map((attempt) => saidIn(attempt.log)) as [Said, Said];
    expect(first).toEqual({ microBatch, accumulation: 2, resume: 'None' });
    expect(attempts[0]!.log).toContain('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ');
    expect(second.microBatch).toBeLessThan(microBatch);
    expect(second.microBatch * second.accumulation).toBe(microBatch * 2);
    expect(second.resume).toMatch(/out\/checkpoint-4\/?$/);
    // Four steps before, four after: none was trained twice, none left out.
    expect(attempts.map((attempt) => stepsIn(attempt.log))).toEqual([4, 4]);
    expect(state().global_step).toBe(8);
    expect(sandbox.exists(ranks > 1 ? 'out/checkpoint-8/rng_state_1.pth' : 'out/checkpoint-8/rng_state.pth')).toBe(
      true,
    );
    expect(sandbox.leftProcesses()).toEqual([]);
  };

  it('is retried once, from its last checkpoint, with a smaller micro batch and the same global batch', async () => {
    const launch = ['python', SCRIPT, ...flags(8, 1024)];
    const { gpu, figures } = await cardThatFits(launch, '');
    // The script is out of memory at every step with this batch, whatever else is made smaller.
    const keep = ['--keep', 'gradient_checkpointing'];
    const run = await sandbox.run(['run', '--gpu', gpu, ...keep, '--', ...launch, ...figures]);
    expect(run.exitCode).toBe(0);
    expectRetriedOnce(8, 1);
  });

  it('is retried all the same where the need seen is nothing like the estimate', async () => {
    const run = await sandbox.run(['run', '--gpu', '24GiB', '--', 'python', SCRIPT, ...flags(8, 64)]);
    expect(run.exitCode).toBe(0);
    expectRetriedOnce(8, 1);
  });

  it('under torchrun, with the other rank waiting for it: the tree is ended, nothing is left, the run is finished', async () => {
    const pids = join(sandbox.folder, 'pids');
    const launch = [
      'torchrun',
      '--nproc-per-node',
      '2',
      SCRIPT,
      ...flags(4, 1024),
      '--ddp_backend',
      'gloo',
      '--oom_rank',
      '1',
    ];
    const { gpu, figures } = await cardThatFits(launch, ':2');
    const keep = ['--keep', 'gradient_checkpointing'];
    const run = sandbox.start(['run', '--gpu', gpu, ...keep, '--', ...launch, ...figures], { SNUG_TEST_PIDS: pids });
    await run.seen(/\[rank1\]: torch\.OutOfMemoryError/);
    const failedRanks = readRecordedPids(pids);
    expect(failedRanks).toHaveLength(2);
    expect(failedRanks.every(isRunning)).toBe(true);
    const failedAt = Date.now();
    await expect.poll(() => failedRanks.some(isRunning), { timeout: 60_000, interval: 200 }).toBe(false);
    // gloo gives up after half an hour; the grace is seconds.
    expect(Date.now() - failedAt).toBeLessThan(50_000);

    expect((await run.ended).exitCode).toBe(0);
    expectRetriedOnce(4, 2);
    const everyRank = readRecordedPids(pids);
    expect(everyRank).toHaveLength(4);
    expect(everyRank.filter(isRunning)).toEqual([]);
  });
});
