import type { Result } from '../src/core/index.ts';
import { estimateMemory, leastDeviceBytes } from '../src/memory/index.ts';
import { describeModel, type ModelFacts } from '../src/model/index.ts';
import { NEUTRAL_VALUES, type PlanValues } from '../src/spec/index.ts';

/** Published shapes, written out so that the bench needs no files. */
export const MODELS = [
  {
    model_type: 'llama',
    hidden_size: 4096,
    intermediate_size: 14336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    vocab_size: 128256,
    tie_word_embeddings: false,
  },
  {
    model_type: 'llama',
    hidden_size: 2048,
    intermediate_size: 5632,
    num_hidden_layers: 22,
    num_attention_heads: 32,
    num_key_value_heads: 4,
    vocab_size: 32000,
    tie_word_embeddings: false,
  },
  {
    model_type: 'qwen2',
    hidden_size: 3584,
    intermediate_size: 18944,
    num_hidden_layers: 28,
    num_attention_heads: 28,
    num_key_value_heads: 4,
    vocab_size: 152064,
    tie_word_embeddings: false,
  },
  {
    model_type: 'mistral',
    hidden_size: 4096,
    intermediate_size: 14336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    vocab_size: 32000,
    tie_word_embeddings: false,
  },
];

export const LORA = {
  r: 16,
  loraAlpha: 32,
  loraDropout: 0.05,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
} as const;
const NF4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: true } as const;
export const METHODS: readonly Partial<PlanValues>[] = [
  { method: 'full' },
  { method: 'lora', lora: LORA },
  { method: 'qlora', lora: LORA, quantization: NF4 },
];

/** Plans that differ in model, method, batch, length, checkpointing, autocast and optimizer; no two are the same. */
export function* plans(): Generator<{ model: number; values: PlanValues }> {
  for (let maxLength = 256; ; maxLength += 8) {
    for (const perDeviceTrainBatchSize of [1, 2, 3, 4, 6, 8]) {
      for (const [model] of MODELS.entries()) {
        for (const method of METHODS) {
          for (const enabled of [true, false]) {
            yield {
              model,
              values: {
                ...NEUTRAL_VALUES,
                dtype: 'bf16',
                mixedPrecision: maxLength % 16 === 0 ? 'bf16' : 'no',
                perDeviceTrainBatchSize,
                gradientAccumulationSteps: 2,
                maxLength,
                gradientCheckpointing: { enabled, useReentrant: false, everyNLayers: 1, offload: false },
                optim: enabled ? 'adamw_torch_fused' : 'adamw_torch',
                ...method,
              },
            };
          }
        }
      }
    }
  }
}

const ROUNDS = 15;
const PER_ROUND = 1000;
const LIMIT = 2000;
const GOAL = 5000;

interface Rate {
  readonly wall: number;
  readonly cpu: number;
}

/**
 * Prints whole estimates a second of one process, allocated, reserved and host memory, median of fifteen rounds over plans that never
 * repeat; beside them the bounds of a search, estimates of models that are met for the first time, and how long a fixed loop takes
 * here. Exit code 1 below the limit.
 */
export function main(): number {
  const facts = MODELS.map((config) => {
    const described = describeModel(config);
    if (!described.ok) throw new Error(described.error[0]!.message);
    return described.value;
  });
  const bounds = measure(facts, (values, model) => leastDeviceBytes(values, model));
  const estimates = measure(facts, (values, model) => estimateMemory(values, model));
  const unknown = measure(facts, (values, model) => estimateMemory(values, unseen(model)));
  print('allocated peaks', bounds);
  print('whole estimates', estimates, `(at least ${LIMIT})`);
  print('of unseen models', unknown);
  // CPU time counts the collector's threads too, the clock what else the machine does: the better of the two is ours.
  const rate = Math.max(estimates.cpu, estimates.wall);
  console.log(`${GOAL} whole estimates a second: ${rate >= GOAL ? 'reached' : 'not reached'}`);
  console.log(
    `median of ${ROUNDS} rounds over plans that are all different; of a model seen before its tensors are remembered`,
  );
  console.log(`this machine now: ${calibrate().toFixed(1)} ns for a step of a loop of multiplications and additions`);
  return rate >= LIMIT ? 0 : 1;
}

/** The same model under another name: nothing is remembered of it. */
const unseen = (facts: ModelFacts): ModelFacts => ({ ...facts, description: { ...facts.description } });

/** CPU nanoseconds of one step of a loop that needs no memory: other programs make a machine slower than it is. */
function calibrate(): number {
  const steps = 30_000_000;
  const before = process.cpuUsage();
  let sum = 0;
  for (let step = 0; step < steps; step += 1) sum = (Math.imul(sum, 31) + step) | 0;
  const { user, system } = process.cpuUsage(before);
  return sum === 0.5 ? 0 : ((user + system) * 1000) / steps;
}

function print(name: string, { wall, cpu }: Rate, note = ''): void {
  console.log(
    `${name.padEnd(16)} ${Math.round(wall)} a second, ${Math.round(cpu)} a second of CPU time   ${note}`.trimEnd(),
  );
}

/** On a busy machine the clock counts other programs too: CPU time beside it. */
function measure(
  facts: readonly ModelFacts[],
  estimate: (values: PlanValues, facts: ModelFacts) => Result<unknown>,
): Rate {
  const source = plans();
  const rates: Rate[] = [];
  // The first round warms the compiler and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    const batch = Array.from({ length: PER_ROUND }, () => source.next().value as { model: number; values: PlanValues });
    const started = performance.now();
    const before = process.cpuUsage();
    for (const { model, values } of batch) {
      const result = estimate(values, facts[model]!);
      if (!result.ok) throw new Error(result.error[0]!.message);
    }
    const { user, system } = process.cpuUsage(before);
    const wall = (PER_ROUND / (performance.now() - started)) * 1000;
    if (round > 0) rates.push({ wall, cpu: (PER_ROUND / (user + system)) * 1e6 });
  }
  const median = (of: keyof Rate): number =>
    rates.map((rate) => rate[of]).toSorted((x, y) => x - y)[Math.floor(ROUNDS / 2)]!;
  return { wall: median('wall'), cpu: median('cpu') };
}
