import { describeModel, type ModelFacts } from '../../src/model/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';

export const SMALL_LLAMA = {
  model_type: 'llama',
  hidden_size: 768,
  intermediate_size: 2304,
  num_hidden_layers: 7,
  num_attention_heads: 12,
  num_key_value_heads: 4,
  vocab_size: 30011,
};

export function factsOf(config: Readonly<Record<string, unknown>> = SMALL_LLAMA): ModelFacts {
  const facts = describeModel(config);
  if (!facts.ok) throw new Error(facts.error[0]!.message);
  return facts.value;
}

export const LORA = {
  r: 12,
  loraAlpha: 24,
  loraDropout: 0,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
} as const;

/** A plain bf16 full fine-tuning step; every test changes what it is about. */
export const plan = (changes: Partial<PlanValues> = {}): PlanValues => ({
  objective: 'sft',
  method: 'full',
  dtype: 'bf16',
  mixedPrecision: 'no',
  perDeviceTrainBatchSize: 3,
  perDeviceEvalBatchSize: 5,
  eval: false,
  gradientAccumulationSteps: 1,
  maxLength: 384,
  packing: false,
  paddingFree: false,
  attentionMask: false,
  attnImplementation: 'sdpa',
  gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false },
  optim: 'adamw_torch_fused',
  maxGradNorm: 0,
  quantization: null,
  lora: null,
  ia3: null,
  distributed: { nodes: 1, processesPerNode: 1, strategy: 'none', offload: [] },
  dataloaderNumWorkers: 0,
  dataloaderPinMemory: true,
  lossImpl: 'full',
  versions: { torch: '2.13', transformers: '5.17', peft: '0.21', trl: '1.13' },
  saveTotalLimit: null,
  allocatorConf: '',
  ...changes,
});

export const CHECKPOINTING = { enabled: true, useReentrant: false, everyNLayers: 1, offload: false } as const;
