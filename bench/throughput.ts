import { estimateMemory } from '../src/memory/index.ts';
import { describeModel } from '../src/model/index.ts';
import { NEUTRAL_VALUES, type PlanValues } from '../src/spec/index.ts';

/** Published shapes, written out so that the bench needs no files. */
const MODELS = [
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

const LORA = {
  r: 16,
  loraAlpha: 32,
  loraDropout: 0.05,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
} as const;
const NF4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: true } as const;
const METHODS: readonly Partial<PlanValues>[] = [
  { method: 'full' },
  { method: 'lora', lora: LORA },
  { method: 'qlora', lora: LORA, quantization: NF4 },
];

/** Plans that differ in model, method, batch, length, checkpointing, autocast and optimizer; no two are the same. */
function* plans(): Generator<{ model: number; values: PlanValues }> {
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

const ROUNDS = 5;
const PER_ROUND = 4000;
const LIMIT = 2000;

/** Prints the estimates a second of one process, median of five rounds over plans that never repeat. Exit code 1 below the limit. */
export function main(): number {
  const facts = MODELS.map((config) => {
    const described = describeModel(config);
    if (!described.ok) throw new Error(described.error[0]!.message);
    return described.value;
  });
  const source = plans();
  const rates: { readonly wall: number; readonly cpu: number }[] = [];
  // The first round warms the compiler and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    const batch = Array.from({ length: PER_ROUND }, () => source.next().value as { model: number; values: PlanValues });
    const started = performance.now();
    const before = process.cpuUsage();
    for (const { model, values } of batch) {
      const estimate = estimateMemory(values, facts[model]!);
      if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    }
    const { user, system } = process.cpuUsage(before);
    const wall = (PER_ROUND / (performance.now() - started)) * 1000;
    if (round > 0) rates.push({ wall, cpu: (PER_ROUND / (user + system)) * 1e6 });
  }
  const median = (of: 'wall' | 'cpu'): number =>
    rates.map((rate) => rate[of]).toSorted((x, y) => x - y)[Math.floor(ROUNDS / 2)]!;
  const what = `median of ${ROUNDS} x ${PER_ROUND} distinct plans, no cache`;
  console.log(`estimates a second               ${Math.round(median('wall'))}   ${what}`);
  // On a busy machine the clock counts other programs too.
  console.log(`estimates a second of CPU time   ${Math.round(median('cpu'))}   at least ${LIMIT}`);
  return median('cpu') >= LIMIT ? 0 : 1;
}
