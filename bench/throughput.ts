import { estimateMemory } from '../src/memory/index.ts';
import { describeModel } from '../src/model/index.ts';
import type { PlanValues } from '../src/spec/index.ts';

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
                objective: 'sft',
                method: 'full',
                dtype: 'bf16',
                mixedPrecision: maxLength % 16 === 0 ? 'bf16' : 'no',
                perDeviceTrainBatchSize,
                perDeviceEvalBatchSize: 8,
                eval: false,
                gradientAccumulationSteps: 2,
                maxLength,
                packing: false,
                paddingFree: false,
                attentionMask: false,
                attnImplementation: 'sdpa',
                gradientCheckpointing: { enabled, useReentrant: false, everyNLayers: 1, offload: false },
                optim: enabled ? 'adamw_torch_fused' : 'adamw_torch',
                maxGradNorm: 1,
                quantization: null,
                lora: null,
                ia3: null,
                distributed: { nodes: 1, processesPerNode: 1, strategy: 'ddp', offload: [] },
                dataloaderNumWorkers: 0,
                dataloaderPinMemory: true,
                lossImpl: 'full',
                versions: { torch: '2.13', transformers: '5.17', peft: '0.21', trl: '1.13' },
                saveTotalLimit: null,
                allocatorConf: '',
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
  const rates: number[] = [];
  // The first round warms the compiler and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    const batch = Array.from({ length: PER_ROUND }, () => source.next().value as { model: number; values: PlanValues });
    const started = performance.now();
    for (const { model, values } of batch) {
      const estimate = estimateMemory(values, facts[model]!);
      if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    }
    if (round > 0) rates.push((PER_ROUND / (performance.now() - started)) * 1000);
  }
  const median = rates.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]!;
  console.log(
    `estimates a second               ${Math.round(median)}   median of ${ROUNDS} × ${PER_ROUND} distinct plans, no cache (at least ${LIMIT})`,
  );
  return median >= LIMIT ? 0 : 1;
}
