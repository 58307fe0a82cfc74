import { existsSync } from 'node:fs';
import { simulatedReserve } from '../src/memory/allocator/oracle.ts';
import type { DeviceFacts } from '../src/memory/device.ts';
import { estimateMemory } from '../src/memory/estimate-memory.ts';
import { describeModel, type ModelFacts } from '../src/model/index.ts';
import { NEUTRAL_VALUES, type PlanValues } from '../src/spec/index.ts';
import { factsOf } from './measured-models.ts';
import { planOfMeasured, readMeasuredRows } from './measured-rows.ts';
import { planOf, readReferenceRows } from './reference-rows.ts';
import { LORA, METHODS, MODELS } from './throughput.ts';

interface Case {
  readonly id: string;
  readonly values: PlanValues;
  readonly facts: ModelFacts;
  readonly device: DeviceFacts;
}

interface Compared {
  readonly id: string;
  /** drawn together ÷ played one by one − 1, of reserved memory. */
  readonly error: number;
  readonly reservedBytes: number;
  readonly allocatedBytes: number;
  readonly playedBytes: number;
}

function compare({ id, values, facts, device }: Case): Compared[] {
  const quick = estimateMemory(values, facts, device);
  const played = estimateMemory(values, facts, device, simulatedReserve);
  if (!quick.ok || !played.ok) return [];
  const { reservedPeakBytes, allocatedPeakBytes } = quick.value.vram;
  const playedBytes = played.value.vram.reservedPeakBytes;
  return [
    {
      id,
      error: reservedPeakBytes / playedBytes - 1,
      reservedBytes: reservedPeakBytes,
      allocatedBytes: allocatedPeakBytes,
      playedBytes,
    },
  ];
}

function* traced(path: string): Generator<Case> {
  for (const row of readReferenceRows(path)) {
    const facts = describeModel(row.config);
    if (facts.ok) yield { id: row.id, values: planOf(row), facts: facts.value, device: {} };
  }
}

function* measured(path: string): Generator<Case> {
  for (const row of readMeasuredRows(path)) {
    const plan = planOfMeasured(row);
    const facts = factsOf(row.model, row.source);
    if (typeof plan === 'string' || typeof facts === 'string') continue;
    yield { id: row.id, values: plan.values, facts, device: plan.device ?? {} };
  }
}

/** Plans at random, the same ones every time. */
function* random(count: number): Generator<Case> {
  let state = 1;
  const next = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const facts = MODELS.map((config) => describeModel(config));
  for (let index = 0; index < count; index += 1) {
    const model = pick(facts);
    if (!model.ok) continue;
    const method = pick([
      ...METHODS,
      { method: 'lora', lora: { ...LORA, r: 64, targetModules: ['q_proj', 'v_proj'] } },
    ] as const);
    const processes = pick([1, 1, 1, 2, 8]);
    const checkpointed = pick([true, false]);
    const values: PlanValues = {
      ...NEUTRAL_VALUES,
      objective: pick(['clm', 'clm', 'sft', 'dpo', 'reward'] as const),
      dtype: pick(['bf16', 'bf16', 'fp32'] as const),
      mixedPrecision: pick(['no', 'bf16'] as const),
      perDeviceTrainBatchSize: pick([1, 2, 3, 4, 8, 16]),
      gradientAccumulationSteps: pick([1, 1, 4]),
      maxLength: pick([200, 512, 777, 1024, 2048, 3000, 4096]),
      attnImplementation: pick(['sdpa', 'sdpa', 'eager', 'flash_attention_2'] as const),
      gradientCheckpointing: {
        enabled: checkpointed,
        useReentrant: pick([true, false]),
        everyNLayers: pick([1, 1, 1, 2]),
        offload: false,
      },
      optim: pick(['adamw_torch', 'adamw_torch_fused', 'adamw_bnb_8bit', 'adafactor', 'sgd']),
      lossImpl: pick(['full', 'full', 'full', 'chunked', 'fused'] as const),
      ...method,
      distributed: {
        nodes: 1,
        processesPerNode: processes,
        strategy: processes === 1 ? 'none' : pick(['ddp', 'zero2', 'zero3', 'fsdp1', 'fsdp2'] as const),
        offload: [],
      },
    };
    const { distributed: d, gradientCheckpointing: c } = values;
    const id = [
      model.value.modelType,
      model.value.numHiddenLayers,
      model.value.hiddenSize,
      values.objective,
      values.method,
      values.dtype,
      values.mixedPrecision,
      values.perDeviceTrainBatchSize,
      values.maxLength,
      values.attnImplementation,
      c.enabled ? (c.useReentrant ? 'reentrant' : 'hooked') : 'plain',
      values.optim,
      values.lossImpl,
      d.strategy,
      d.processesPerNode,
      values.gradientAccumulationSteps,
    ].join(' ');
    yield { id, values, facts: model.value, device: {} };
  }
}

const percent = (value: number): string => `${(value * 100).toFixed(2)} %`.padStart(9);
const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(2).padStart(7);

function report(name: string, compared: readonly Compared[], worst: number): void {
  const sizes = compared.map(({ error }) => Math.abs(error)).sort((a, b) => a - b);
  if (sizes.length === 0) return;
  const at = (share: number): number => sizes[Math.min(sizes.length - 1, Math.ceil(share * sizes.length) - 1)]!;
  const under = compared.filter(({ error }) => error < -0.05).length;
  const lowest = Math.min(...compared.map(({ error }) => error));
  console.log(
    `${name.padEnd(24)} ${String(sizes.length).padStart(5)} ${percent(at(0.5))} ${percent(at(0.95))} ${percent(sizes.at(-1)!)} ${percent(lowest)} ${String(under).padStart(8)}`,
  );
  for (const one of [...compared].sort((a, b) => Math.abs(b.error) - Math.abs(a.error)).slice(0, worst)) {
    console.log(
      `  ${percent(one.error)} ${gib(one.reservedBytes)} for ${gib(one.playedBytes)}, allocated ${gib(one.allocatedBytes)}  ${one.id}`,
    );
  }
}

/**
 * Reserved memory with equal layers drawn together against every allocation played one by one. Arguments: [--traced peaks.jsonl]
 * [--measured measured.jsonl] [--random N] [--worst N].
 */
export function main(argv: readonly string[]): number {
  const argument = (flag: string, otherwise: string): string => {
    const index = argv.indexOf(flag);
    return index < 0 ? otherwise : argv[index + 1]!;
  };
  const worst = Number(argument('--worst', '0'));
  console.log(`${''.padEnd(24)}     n    median       p95     worst    lowest  under>5%`);
  const all: Compared[] = [];
  const sources: readonly (readonly [string, string, (path: string) => Iterable<Case>])[] = [
    ['traced', argument('--traced', '../shared/reference/peaks.jsonl'), traced],
    ['measured', argument('--measured', '../shared/measured/measured.jsonl'), measured],
    ['random', argument('--random', '400'), (count) => random(Number(count))],
  ];
  for (const [name, path, cases] of sources) {
    if (name !== 'random' && !existsSync(path)) {
      console.log(`${name.padEnd(24)} no file at ${path}`);
      continue;
    }
    const compared = [...cases(path)].flatMap(compare);
    report(name, compared, worst);
    all.push(...compared);
  }
  report('all', all, 0);
  return 0;
}
