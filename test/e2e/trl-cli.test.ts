import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { ensureBuilt, makeSandbox, type Sandbox, SETUP_TIMEOUT_MS, TRAINER_TIMEOUT_MS } from '../support/snug-cli.ts';
import { addTinyModel } from '../support/tiny-model.ts';

const CONFIG = `# one card, a small model; rows are cut at max_length
model_name_or_path: model
dataset_name: 'data'

max_length: 1024            # tokens
per_device_train_batch_size:   16   # rows at a time
gradient_accumulation_steps: 2 # 32 rows a step
gradient_checkpointing: true
optim: adamw_torch

max_steps: 2
learning_rate: 1e-4
use_cpu: true
bf16: false
save_strategy: "no"
report_to: none
output_dir: out   # ends with the trainer's own record of its arguments
`;

interface CheckJson {
  readonly estimate: { readonly vram: { readonly device_peak_bytes: number } };
  readonly budget: { readonly capacity_bytes: number; readonly usable_bytes: number };
  readonly plan: {
    readonly verdict: string;
    readonly estimate: { readonly vram: { readonly device_peak_bytes: number } };
    readonly changes: readonly { readonly setting: string; readonly from: unknown; readonly to: unknown }[];
  };
}

describe('trl sft with a YAML that needs more than the card has', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let python: string;
  let sandbox: Sandbox;
  const launch = ['--', 'trl', 'sft', '--config', 'sft.yaml'];

  const check = async (gpuBytes: number): Promise<{ exitCode: number | null; answer: CheckJson }> => {
    const gpu = `${Math.round(gpuBytes / 2 ** 20)}MiB`;
    const { exitCode, stdout } = await sandbox.run(['check', '--json', '--gpu', gpu, '--allow', 'exact', ...launch]);
    return { exitCode, answer: JSON.parse(stdout) };
  };

  /** The trainer's own record of the arguments it ran with. */
  const trainedWith = async (): Promise<Record<string, unknown>> => {
    const program = `import json, sys, torch
args = torch.load('out/training_args.bin', weights_only=False)
names = ['per_device_train_batch_size', 'gradient_accumulation_steps', 'max_length', 'gradient_checkpointing', 'max_steps', 'learning_rate']
json.dump({name: getattr(args, name) for name in names}, sys.stdout)`;
    const { stdout, stderr } = await sandbox.startProgram([python, '-c', program]).ended;
    return JSON.parse(stdout || `{"error": ${JSON.stringify(stderr)}}`);
  };

  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
    sandbox = makeSandbox({ python });
    await addTinyModel(sandbox, python);
    sandbox.write('sft.yaml', CONFIG);
  }, SETUP_TIMEOUT_MS);
  afterAll(() => sandbox?.remove());

  it('trains with a smaller micro batch, the same global batch, and the user’s file untouched', async () => {
    const roomy = await check(80 * 2 ** 30);
    expect(roomy.exitCode).toBe(0);
    const asWritten = roomy.answer.estimate.vram.device_peak_bytes;

    const tight = await check(asWritten * 0.9);
    expect(tight.exitCode).toBe(10);
    const fitted = tight.answer.plan.estimate.vram.device_peak_bytes;
    expect(fitted).toBeLessThan(asWritten);

    // A card whose usable part lies halfway between the two needs.
    const usableShare = tight.answer.budget.usable_bytes / tight.answer.budget.capacity_bytes;
    const gpu = `${Math.round((asWritten + fitted) / 2 / usableShare / 2 ** 20)}MiB`;
    const run = await sandbox.run(['run', '--gpu', gpu, '--allow', 'exact', ...launch]);
    expect(run.stderr).not.toContain('Traceback');
    expect(run.exitCode).toBe(0);

    const trained = await trainedWith();
    expect(trained).toMatchObject({
      max_length: 1024,
      gradient_checkpointing: true,
      max_steps: 2,
      learning_rate: 1e-4,
    });
    const microBatch = trained.per_device_train_batch_size as number;
    expect(microBatch).toBeLessThan(16);
    expect(microBatch * (trained.gradient_accumulation_steps as number)).toBe(32);

    expect(sandbox.read('sft.yaml')).toBe(CONFIG);
    const { attempts } = sandbox.onlyRun();
    expect(attempts).toHaveLength(1);
    const copies = readdirSync(attempts[0]!.folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.yaml'),
    );
    expect(copies).toHaveLength(1);
    // Comments, quotes, spacing and every other line are as the user wrote them.
    expect(readFileSync(join(attempts[0]!.folder, copies[0]!), 'utf8')).toBe(
      CONFIG.replace('batch_size:   16 ', `batch_size:   ${microBatch} `).replace(
        'steps: 2 #',
        `steps: ${32 / microBatch} #`,
      ),
    );
  });
});
