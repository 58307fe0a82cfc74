import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatBytes } from '../src/core/index.ts';
import { type CpuRun, hostRamOnCpu } from '../src/memory/host-ram/cpu-run.ts';
import { cpuStep } from '../src/memory/host-ram/cpu-step.ts';
import type { RowStorage } from '../src/memory/host-ram/datasets.ts';
import { hostModelOf } from '../src/memory/host-ram/index.ts';
import type { Merge } from '../src/memory/host-ram/merging.ts';
import type { RamEstimate } from '../src/memory/index.ts';
import { planParameters } from '../src/memory/parameters.ts';
import { shardingOf } from '../src/memory/sharding.ts';
import { walkRun } from '../src/memory/walk-run.ts';
import { describeModel, type ModelFacts, visitOps } from '../src/model/index.ts';
import { type PlanValues, planValues } from '../src/spec/index.ts';

/** One measured run; fields as `host-ram/measure.py` writes them. */
interface MeasuredRun {
  readonly id: string;
  readonly kind: 'python' | 'torch' | 'stack' | 'load' | 'train' | 'merge';
  readonly model?: string;
  readonly dtype?: 'float32' | 'bfloat16';
  readonly method?: 'full' | 'lora';
  readonly rank?: number;
  readonly ranks?: number;
  readonly batch?: number;
  readonly tokens?: number;
  readonly rows?: number;
  readonly dataset?: 'list' | 'memory' | 'arrow';
  readonly workers?: number;
  readonly prefetch?: number;
  readonly checkpointing?: boolean;
  readonly peak_bytes: number;
  readonly peak_phase: string;
  readonly date: string;
  readonly versions: Readonly<Record<string, string>>;
}

interface StoredModel {
  readonly stored: string;
  readonly config: Readonly<Record<string, unknown>>;
}

const FOLDER = join(import.meta.dirname, 'host-ram');
const STORAGE: Readonly<Record<NonNullable<MeasuredRun['dataset']>, RowStorage>> = {
  list: 'python-lists',
  memory: 'arrow-in-memory',
  arrow: 'mapped',
};

const dtypeOf = (name: string | undefined): 'fp32' | 'bf16' => (name === 'bfloat16' ? 'bf16' : 'fp32');

function factsOf(model: StoredModel): ModelFacts {
  const facts = describeModel({ ...model.config, dtype: model.stored });
  if (!facts.ok) throw new Error(facts.error[0]!.message);
  return facts.value;
}

function valuesOf(run: MeasuredRun): PlanValues {
  const origin = { kind: 'derived', from: 'the measured run' } as const;
  const neutral = planValues(
    {
      perDeviceTrainBatchSize: { value: run.batch ?? 1, origin },
      maxLength: { value: run.tokens ?? 1, origin },
    },
    undefined,
  );
  if (!neutral.ok) throw new Error(neutral.error[0]!.message);
  const ranks = run.ranks ?? 1;
  return {
    ...neutral.value,
    objective: 'clm',
    method: run.method ?? 'full',
    dtype: dtypeOf(run.dtype),
    gradientCheckpointing: {
      enabled: run.checkpointing ?? false,
      useReentrant: false,
      everyNLayers: 1,
      offload: false,
    },
    lora:
      run.method === 'lora' || run.kind === 'merge'
        ? {
            r: run.rank!,
            loraAlpha: 8,
            loraDropout: 0,
            targetModules: 'all-linear',
            adapterDtype: 'fp32',
            modulesToSave: [],
          }
        : null,
    distributed: { nodes: 1, processesPerNode: ranks, strategy: ranks > 1 ? 'ddp' : 'none', offload: [] },
    dataloaderNumWorkers: run.workers ?? 0,
    versions: {
      torch: run.versions.torch!.split('+')[0]!,
      transformers: run.versions.transformers!,
      peft: run.versions.peft!,
      trl: run.versions.trl!,
    },
  };
}

/** What the estimator makes of a measured run, told only what the run was told. */
function estimateRun(run: MeasuredRun, models: Readonly<Record<string, StoredModel>>): RamEstimate {
  const ranks = run.ranks ?? 1;
  if (run.model === undefined) {
    return hostRamOnCpu({ imports: run.kind === 'python' || run.kind === 'torch' ? run.kind : 'trainer', ranks });
  }
  const facts = factsOf(models[run.model]!);
  const values = valuesOf(run);
  const plan = planParameters(facts.description, values);
  const load = { values, sharding: shardingOf(values), model: hostModelOf(values, facts, plan, 1) };
  const cpu: CpuRun = { imports: 'trainer', ranks, load };
  if (run.kind === 'load') return hostRamOnCpu(cpu);
  if (run.kind === 'merge') return hostRamOnCpu({ ...cpu, merge: mergeOf(facts, values) });
  const walked = walkRun(values, facts, {}, {});
  if (!walked.ok) throw new Error(walked.error[0]!.message);
  const batchTokens = run.batch! * run.tokens!;
  return hostRamOnCpu({
    ...cpu,
    stepBytes: cpuStep(walked.value),
    loader: { workers: run.workers ?? 0, prefetch: run.prefetch ?? 2, pinMemory: false, ranks, batchTokens },
    rows: { integers: 2 * (run.rows ?? 64) * run.tokens!, storage: STORAGE[run.dataset ?? 'memory'] },
  });
}

function mergeOf({ description }: ModelFacts, values: PlanValues): Merge {
  let largestTarget = 0;
  for (const ops of description.kinds) {
    visitOps(ops, '', (op) => {
      if (op.op === 'linear') largestTarget = Math.max(largestTarget, op.inFeatures * op.outFeatures);
    });
  }
  return { adapterBytes: planParameters(description, { ...values, method: 'lora' }).trainable * 4, largestTarget };
}

const percent = (value: number): string => `${value < 0 ? '' : '+'}${(value * 100).toFixed(1)} %`.padStart(8);

/** Prints the estimate of host RAM beside every measured run. Measures nothing itself: `host-ram/measure.py` does. */
export function main(argv: readonly string[]): number {
  const { models } = JSON.parse(readFileSync(join(FOLDER, 'cases.json'), 'utf8')) as {
    models: Record<string, StoredModel>;
  };
  const runs = readFileSync(argv[0] ?? join(FOLDER, 'measured.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as MeasuredRun);
  console.log(`${'run'.padEnd(22)} ${'measured'.padStart(10)} ${'estimate'.padStart(10)}    error  terms`);
  const errors = runs.map((run) => {
    const { peakBytes, terms } = estimateRun(run, models);
    const error = peakBytes / run.peak_bytes - 1;
    const parts = Object.entries(terms)
      .sort(([, a], [, b]) => b - a)
      .map(([name, bytes]) => `${name} ${formatBytes(bytes)}`);
    const sizes = [run.peak_bytes, peakBytes].map((bytes) => formatBytes(bytes).padStart(10)).join(' ');
    console.log(`${run.id.padEnd(22)} ${sizes} ${percent(error)}  ${parts.slice(0, 4).join(', ')}`);
    return error;
  });
  const sizes = errors.map(Math.abs);
  const most = Math.max(...sizes);
  const mean = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  console.log(
    `${runs.length} runs: mean ${percent(mean)}, largest ${percent(most)}, most under ${percent(Math.min(...errors))}`,
  );
  return sizes.every((size) => size <= 0.15) && errors.every((error) => error >= -0.1) ? 0 : 1;
}
