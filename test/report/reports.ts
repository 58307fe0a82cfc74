import { GiB } from '../../src/core/index.ts';
import type { Failure } from '../../src/diagnosis/index.ts';
import { type MemoryBudget, type MemoryEstimate, memoryBudget } from '../../src/memory/index.ts';
import { DEFAULT_POLICY, type Plan } from '../../src/planner/index.ts';
import type { CheckReport } from '../../src/report/index.ts';
import type { PlanValues, SpecChange } from '../../src/spec/index.ts';
import { toyValues } from '../planner/toy.ts';

/** An estimate from GiB a term; its peaks follow. */
export function estimateOf(terms: Partial<Record<keyof MemoryEstimate['vram']['terms'], number>>): MemoryEstimate {
  const names = [
    'weights',
    'gradients',
    'optimizerStates',
    'activations',
    'logits',
    'temporaryBuffers',
    'communicationBuffers',
    'inferenceEngine',
    'fragmentation',
    'cudaContext',
  ] as const;
  const bytes = Object.fromEntries(names.map((name) => [name, Math.round((terms[name] ?? 0) * GiB)]));
  const all = bytes as unknown as MemoryEstimate['vram']['terms'];
  const device = Object.values(all).reduce((sum, one) => sum + one, 0);
  return {
    params: { total: 7_241_000_000, trainable: 41_900_000 },
    vram: {
      allocatedPeakBytes: device - all.fragmentation - all.cudaContext,
      reservedPeakBytes: device - all.cudaContext,
      devicePeakBytes: device,
      lowBytes: Math.round(device * 0.95),
      highBytes: Math.round(device * 1.05),
      peakPhase: 'backward',
      terms: all,
    },
    ram: { peakBytes: 6 * GiB, neededBytes: 6 * GiB, terms: { pythonStack: 4 * GiB, dataloaderWorkers: 2 * GiB } },
    assumptions: ['every row is full'],
  };
}

export const before = estimateOf({
  weights: 13.5,
  gradients: 0.1,
  optimizerStates: 0.3,
  activations: 14,
  logits: 2,
  fragmentation: 1,
  cudaContext: 0.5,
});
export const after = estimateOf({
  weights: 13.5,
  gradients: 0.1,
  optimizerStates: 0.3,
  activations: 3.5,
  logits: 0.5,
  fragmentation: 0.3,
  cudaContext: 0.5,
});

export const budget: MemoryBudget = memoryBudget(24 * GiB, GiB, 0.05);
export const values: PlanValues = toyValues({ perDeviceTrainBatchSize: 6, gradientAccumulationSteps: 3 });

export const batchChanges: readonly SpecChange[] = [
  {
    setting: 'perDeviceTrainBatchSize',
    from: 6,
    to: 2,
    lever: 'micro-batch',
    class: 'exact',
    savesBytes: 12 * GiB,
    cost: 'about 1.1 × the step time',
  },
  {
    setting: 'gradientAccumulationSteps',
    from: 3,
    to: 9,
    lever: 'micro-batch',
    class: 'exact',
    savesBytes: 0,
    cost: 'about 1.1 × the step time',
  },
  {
    setting: 'lossImpl',
    from: 'full',
    to: 'chunked',
    lever: 'loss',
    class: 'free',
    savesBytes: 0.9 * GiB,
    cost: 'none',
  },
];

const file = (line: number) => ({ kind: 'file', path: 'tune.yaml', line }) as const;

/** A report on one launch with nothing planned yet. */
export const baseReport: CheckReport = {
  argv: [
    'accelerate',
    'launch',
    'tune.py',
    '--per_device_train_batch_size',
    '6',
    '--hub_token',
    'hf_qwertyuiopasdfghjk',
  ],
  env: { WANDB_API_KEY: '0123456789abcdef', OMP_NUM_THREADS: '4' },
  reading: {
    stack: [
      { dialect: 'accelerate', kind: 'launcher' },
      { dialect: 'hf-trainer', kind: 'trainer' },
    ],
    wrappers: ['srun'],
    files: ['tune.yaml'],
    unread: [
      { key: 'warmup_steps', origin: file(9), reason: 'no-effect-on-memory' },
      { key: 'learning_rate', origin: file(10), reason: 'no-effect-on-memory' },
      { key: 'zebra_mode', origin: file(11), reason: 'unknown-key' },
    ],
  },
  spec: {
    modelNameOrPath: { value: 'acme/lynx-7b', origin: file(1) },
    method: { value: 'lora', origin: { kind: 'argv', index: 2 } },
    dtype: { value: 'bf16', origin: file(3) },
    perDeviceTrainBatchSize: { value: 6, origin: { kind: 'argv', index: 4 } },
    gradientAccumulationSteps: { value: 3, origin: file(5) },
    maxLength: { value: null, origin: { kind: 'env', name: 'MAX_LEN' } },
    gradientCheckpointing: {
      value: { enabled: true, useReentrant: false, everyNLayers: 1, offload: false },
      origin: { kind: 'default', tool: 'trl', version: '1.13' },
    },
    lora: {
      value: {
        r: 64,
        loraAlpha: 16,
        loraDropout: 0.1,
        targetModules: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'up_proj'],
        adapterDtype: 'fp32',
        modulesToSave: [],
      },
      origin: file(7),
    },
    quantization: { value: null, origin: { kind: 'default', tool: 'trl', version: '1.13' } },
    distributed: {
      value: { nodes: 1, processesPerNode: 2, strategy: 'zero2', offload: ['optimizer'] },
      origin: { kind: 'derived', from: '2 visible GPUs' },
    },
  },
  model: {
    nameOrPath: 'acme/lynx-7b',
    place: '/models/lynx-7b',
    source: 'folder',
    facts: {
      modelType: 'mistral',
      parameters: 7_241_000_000,
      checkpointDtype: 'bf16',
      vocabSize: 32_000,
      hiddenSize: 4096,
      numHiddenLayers: 32,
      maxPositionEmbeddings: 32_768,
      assumptions: [],
    } as unknown as NonNullable<CheckReport['model']>['facts'],
  },
  hardware: {
    gpus: [],
    source: 'nvidia-smi',
    notes: [],
    host: {
      totalBytes: 64 * GiB,
      availableBytes: 48 * GiB,
      limitedBy: 'MemAvailable',
      swapTotalBytes: 0,
      swapFreeBytes: 0,
    },
    sharedMemory: undefined,
    disk: undefined,
  },
  device: {
    index: 1,
    uuid: 'GPU-1',
    name: 'NVIDIA RTX A5000',
    totalBytes: 24 * GiB,
    usedBytes: GiB,
    freeBytes: 23 * GiB,
    computeCapability: { major: 8, minor: 6 },
  },
  estimate: before,
  budget,
  policy: DEFAULT_POLICY,
  diagnostics: [],
};

export const rewritePlan = {
  verdict: 'rewrite' as const,
  stepFactor: 1.2,
  values,
  changes: batchChanges,
  before,
  estimate: after,
} satisfies Plan;
export const refusePlan: Extract<Plan, { verdict: 'refuse' }> = {
  verdict: 'refuse' as const,
  values,
  changes: [] as [],
  before,
  estimate: before,
  refusal: {
    shortfallBytes: 2 * GiB,
    hostShortfallBytes: 0,
    smallest: { changes: batchChanges.slice(0, 2), estimate: estimateOf({ weights: 13.5, activations: 10.5 }) },
    wouldFit: [
      {
        allow: 'data',
        changes: [
          {
            setting: 'maxLength',
            from: 1024,
            to: 512,
            lever: 'max-length',
            class: 'data',
            savesBytes: 7 * GiB,
            cost: 'rows longer than 512 tokens are cut',
          },
        ],
        estimate: after,
      },
    ],
    unavailable: [{ lever: 'qlora', reason: "bitsandbytes does not import in the trainer's Python" }],
  },
} satisfies Plan;

export const failure: Failure = {
  kind: 'vram_capacity',
  resource: 'vram',
  phase: 'backward',
  confidence: 'high',
  candidates: [],
  evidence: [{ line: 37, text: 'OutOfMemoryError: no room for another 512.00 MiB', rank: 1, stream: 'stderr' }],
  numbers: { triedBytes: 0.5 * GiB, allocatedBytes: 22 * GiB, totalBytes: 24 * GiB },
};
