import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';
import { addTinyModel } from '../support/tiny-model.ts';

describe('examples', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let python: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
  }, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox({ python });
  });
  afterEach(() => sandbox.remove());

  it('npm run demo shows what it says it shows', async () => {
    const { exitCode, stdout, milliseconds } = await sandbox.startProgram([
      process.execPath,
      join(ROOT, 'scripts', 'demo.mjs'),
    ]).ended;
    expect(stdout).toMatch(/the global batch stayed: 32 -> 32 -> 32/);
    expect(stdout).toMatch(/40 of 40 steps, 1280 samples/);
    expect(stdout).not.toMatch(/^ {2}NO/m);
    expect(exitCode).toBe(0);
    expect(milliseconds).toBeLessThan(60_000);
  });

  // The cards that examples/trl-sft/README.md names.
  it.each([
    ['sft-lora.yaml', 'a100-40gb', 0],
    ['sft-lora.yaml', 'rtx-4090', 10],
    ['sft-qlora.yaml', 'rtx-3060', 0],
    ['sft-full.yaml', 'a100-40gb', 0],
  ] as const)('trl-sft/%s on a %s: exit code %i', async (config, gpu, exitCode) => {
    cpSync(join(ROOT, 'examples', 'trl-sft'), sandbox.folder, { recursive: true });
    const ended = await sandbox.run(['check', '--gpu', gpu, '--', 'python', 'train.py', '--config', config]);
    expect(ended.exitCode).toBe(exitCode);
  });

  it.each(['sft-lora.yaml', 'sft-full.yaml'])('trl-sft/%s trains, on the CPU with a small model', async (config) => {
    cpSync(join(ROOT, 'examples', 'trl-sft'), sandbox.folder, { recursive: true });
    cpSync(join(sandbox.folder, 'data'), join(sandbox.folder, 'chat'), { recursive: true });
    await addTinyModel(sandbox, python);
    const small = [
      '--model_name_or_path',
      'model',
      '--dataset_name',
      'chat',
      '--dtype',
      'float32',
      '--bf16',
      'false',
      '--use_cpu',
      'true',
    ];
    const short = [
      '--max_steps',
      '2',
      '--save_steps',
      '2',
      '--per_device_train_batch_size',
      '2',
      '--output_dir',
      'out',
    ];
    const ended = await sandbox.run([
      'run',
      '--gpu',
      '24GiB',
      '--',
      'python',
      'train.py',
      '--config',
      config,
      ...small,
      ...short,
    ]);
    expect(ended.exitCode).toBe(0);
    expect(JSON.parse(sandbox.read('out/trainer_state.json'))).toMatchObject({ global_step: 2 });
  });
});
