import type {
  Distributed,
  GradientCheckpointing,
  Lora,
  Quantization,
  SettingName,
  TrainingSpec,
  TrainingValues,
} from '../spec/index.ts';

type Probes = { readonly [K in SettingName]: readonly TrainingValues[K][] };

const NF4: Quantization = {
  bits: 4,
  quantType: 'nf4',
  doubleQuant: true,
  computeDtype: 'bf16',
  upcastRestToFp32: false,
};
const ADAPTER: Lora = {
  r: 12,
  loraAlpha: 24,
  loraDropout: 0,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
};
const CHECKPOINTING: GradientCheckpointing = { enabled: true, useReentrant: false, everyNLayers: 1, offload: false };

/**
 * Values of each setting that a plan may want, different from what `spec` says: a setting counts as writable where a launch
 * can be told one of them. What a plan never moves (the model, its config, versions) has none.
 */
export function probeValues(spec: TrainingSpec): Probes {
  return {
    modelNameOrPath: [],
    modelConfig: [],
    versions: [],
    objective: [],
    optimArgs: [],
    optimTargetModules: [],
    optimizerInBackward: [],
    embeddingsInFp32: [],
    syncsEachMicroBatch: [true],
    ownModules: [],
    holdsLastLoss: [],
    labelSmoothingFactor: [],
    neftuneNoiseAlpha: [],
    torchCompile: [],
    fusedKernels: [],
    ia3: [],
    promptTuning: [],
    generation: [],
    attentionMask: [],
    maxTargetLength: [],
    precomputeRefLogProbs: [],
    method: ['qlora', 'lora', 'full'],
    dtype: ['bf16', 'fp32'],
    mixedPrecision: ['bf16', 'fp16', 'no'],
    perDeviceTrainBatchSize: [(spec.perDeviceTrainBatchSize?.value ?? 0) === 1 ? 2 : 1],
    perDeviceEvalBatchSize: [(spec.perDeviceEvalBatchSize?.value ?? 0) === 1 ? 2 : 1],
    eval: [true, false],
    gradientAccumulationSteps: [(spec.gradientAccumulationSteps?.value ?? 1) * 2],
    maxLength: [128],
    packing: [true, false],
    paddingFree: [true, false],
    attnImplementation: ['sdpa', 'flash_attention_2', 'eager'],
    gradientCheckpointing: checkpointings(spec),
    optim: ['adamw_8bit', 'adamw_bnb_8bit', 'paged_adamw_8bit'],
    maxGradNorm: [0.5, 1],
    quantization: [NF4, { ...NF4, upcastRestToFp32: true }, { ...NF4, doubleQuant: false }],
    lora: [ADAPTER, { ...ADAPTER, adapterDtype: 'bf16' }, { ...ADAPTER, loraAlpha: spec.lora?.value?.loraAlpha ?? 24 }],
    distributed: distributions(spec.distributed?.value),
    dataloaderNumWorkers: [(spec.dataloaderNumWorkers?.value ?? 0) + 1],
    dataloaderPinMemory: [true, false],
    lossImpl: ['chunked', 'fused', 'full'],
    outputDir: ['elsewhere'],
    saveTotalLimit: [1, 2],
    resumeFromCheckpoint: ['elsewhere/checkpoint-1'],
    // Set in the environment, whatever the dialect.
    allocatorConf: [],
  };
}

function checkpointings(spec: TrainingSpec): readonly GradientCheckpointing[] {
  const now = spec.gradientCheckpointing?.value ?? CHECKPOINTING;
  const values = [true, false].flatMap((enabled) =>
    [now.useReentrant, false].map((useReentrant) => ({ ...CHECKPOINTING, enabled, useReentrant })),
  );
  return [...values, { ...CHECKPOINTING, offload: true }];
}

function distributions(now: Distributed | null | undefined): readonly Distributed[] {
  if (!now) return [];
  return [
    { ...now, processesPerNode: now.processesPerNode + 1 },
    { ...now, strategy: now.strategy === 'zero3' ? 'zero2' : 'zero3' },
    { ...now, strategy: now.strategy === 'fsdp2' ? 'fsdp1' : 'fsdp2' },
    { ...now, offload: now.offload.includes('optimizer') ? [] : ['optimizer'] },
  ];
}
