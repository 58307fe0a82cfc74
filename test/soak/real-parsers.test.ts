import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { type FittedLaunch, type LaunchReading, writeLaunch } from '../../src/dialects/index.ts';
import { probeValues } from '../../src/dialects/probe-values.ts';
import { REGISTRY } from '../../src/dialects/registry.ts';
import { readExample } from '../../src/dialects/support.ts';
import type { SettingName, SpecChange } from '../../src/spec/index.ts';
import { change } from '../dialects/phrase-book.ts';

/** Dialects whose tools are in the tests' own Python. */
const INSTALLED = ['accelerate', 'accelerate-config', 'torchrun', 'trl', 'alignment-handbook', 'hf-trainer'];

/** Fields that hold a setting as it is. Pinned memory is none: without a GPU the Trainer turns it off. */
const FIELDS: Partial<Record<SettingName, string>> = {
  perDeviceTrainBatchSize: 'per_device_train_batch_size',
  perDeviceEvalBatchSize: 'per_device_eval_batch_size',
  gradientAccumulationSteps: 'gradient_accumulation_steps',
  optim: 'optim',
  maxGradNorm: 'max_grad_norm',
  dataloaderNumWorkers: 'dataloader_num_workers',
  saveTotalLimit: 'save_total_limit',
  outputDir: 'output_dir',
  attnImplementation: 'attn_implementation',
};

interface Case {
  readonly id: string;
  readonly dialect: string;
  readonly setting: SettingName;
  readonly to: unknown;
  readonly fitted: FittedLaunch;
  readonly files: Readonly<Record<string, string>>;
}

interface Answer {
  readonly id: string;
  readonly error?: string;
  readonly launcher: Readonly<Record<string, unknown>>;
  readonly trainer: Readonly<Record<string, unknown>>;
}

/** Every value that each example of a dialect says it can be told, written. */
function casesOf(id: string): Case[] {
  const dialect = REGISTRY.find((each) => each.id === id)!;
  return (dialect.examples ?? []).flatMap((example, number) => {
    const reading = readExample(example);
    if (!reading.ok) throw new Error(JSON.stringify(reading.error));
    return Object.entries(probeValues(reading.value.spec)).flatMap(([name, values]) => {
      const setting = name as SettingName;
      return values.flatMap((to: unknown, index: number): Case[] => {
        // Quantisation and adapters belong to a method; a method alone may lack its adapter's base.
        const method = setting === 'quantization' ? [change('method', 'qlora')] : [];
        if (reading.value.writable(setting, to) !== true) return [];
        const changes = [change(setting, to), ...method, ...sameStep(setting, to, reading.value)];
        const fitted = writeLaunch(reading.value, { changes, copyFolder: 'copies' });
        if (!fitted.ok) return [];
        const key = `${id} ${number} ${setting} ${index}`;
        return [{ id: key, dialect: id, setting, to, fitted: fitted.value, files: example.files ?? {} }];
      });
    });
  });
}

/** A plan moves both halves of the global batch: trainers that generate refuse a step that their groups do not divide. */
function sameStep(setting: SettingName, to: unknown, { spec }: LaunchReading): SpecChange[] {
  const rows = (spec.perDeviceTrainBatchSize?.value ?? 1) * (spec.gradientAccumulationSteps?.value ?? 1);
  const steps = setting === 'perDeviceTrainBatchSize' ? rows / Number(to) : Number.NaN;
  return Number.isInteger(steps) ? [change('gradientAccumulationSteps', steps)] : [];
}

const cases = INSTALLED.flatMap(casesOf);
const answers = new Map<string, Answer>();
const folder = mkdtempSync(join(tmpdir(), 'snug-parsers-'));
const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

beforeAll(async () => {
  const jobs = cases.map(({ id, fitted, files }, index) => {
    const cwd = join(folder, String(index));
    mkdirSync(cwd);
    for (const [path, text] of Object.entries(files)) write(join(cwd, path), text);
    for (const { copy, text } of fitted.files) write(join(cwd, copy), text);
    return JSON.stringify({ id, cwd, argv: fitted.argv });
  });
  const script = join(import.meta.dirname, '../support/parse-launches.py');
  const python = await ensurePythonEnv();
  const run = await execa(python, [script], {
    input: `${jobs.join('\n')}\n`,
    env: { CUDA_VISIBLE_DEVICES: '', HF_HOME: folder, OMP_NUM_THREADS: '1' },
  });
  for (const line of run.stdout.split('\n').filter((each) => each.startsWith('{'))) {
    const answer = JSON.parse(line) as Answer;
    answers.set(answer.id, answer);
  }
  if (answers.size !== jobs.length) throw new Error(run.stderr.slice(-4000));
}, 600_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(INSTALLED)('what is written for %s', (dialect) => {
  const mine = cases.filter((each) => each.dialect === dialect);

  it('is a lot', () => {
    expect(mine.length).toBeGreaterThan(dialect === 'torchrun' ? 0 : 3);
  });

  it.each(mine)('its own parser takes: $id', ({ id, setting, to, fitted }) => {
    const answer = answers.get(id)!;
    expect(answer.error, fitted.argv.join(' ')).toBeUndefined();
    const field = FIELDS[setting];
    if (field !== undefined) expect(answer.trainer[field]).toEqual(to);
    if (setting === 'mixedPrecision' && !dialect.startsWith('accelerate') && answer.trainer.bf16 !== undefined) {
      expect([answer.trainer.bf16 === true, answer.trainer.fp16 === true]).toEqual([to === 'bf16', to === 'fp16']);
    }
    if (setting === 'quantization' && 'load_in_4bit' in answer.trainer) expect(answer.trainer.load_in_4bit).toBe(true);
    if (setting === 'lora' && 'lora_r' in answer.trainer) expect(answer.trainer.lora_r).toBe((to as { r: number }).r);
    if (setting === 'gradientCheckpointing' && 'gradient_checkpointing' in answer.trainer) {
      expect(answer.trainer.gradient_checkpointing).toBe((to as { enabled: boolean }).enabled);
    }
  });
});
