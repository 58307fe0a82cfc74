import { bytesOf, GiB, ok, type Result } from '../../src/core/index.ts';
import type { MemoryBudget, MemoryEstimate } from '../../src/memory/index.ts';
import { DEFAULT_POLICY, type PlanRequest, type Surroundings } from '../../src/planner/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';

export const toyValues = (changes: Partial<PlanValues> = {}): PlanValues => ({
  objective: 'sft',
  method: 'full',
  dtype: 'bf16',
  mixedPrecision: 'bf16',
  perDeviceTrainBatchSize: 8,
  perDeviceEvalBatchSize: 8,
  eval: false,
  gradientAccumulationSteps: 4,
  maxLength: 1024,
  packing: false,
  paddingFree: false,
  attentionMask: false,
  attnImplementation: 'sdpa',
  gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false },
  optim: 'adamw_torch',
  maxGradNorm: 1,
  quantization: null,
  lora: null,
  ia3: null,
  distributed: { nodes: 1, processesPerNode: 2, strategy: 'ddp', offload: [] },
  dataloaderNumWorkers: 0,
  dataloaderPinMemory: true,
  lossImpl: 'full',
  versions: { torch: '2.13', transformers: '5.17', peft: '0.21', trl: '1.13' },
  saveTotalLimit: null,
  allocatorConf: '',
  ...changes,
});

export const toyLora = {
  r: 8,
  loraAlpha: 8,
  loraDropout: 0.05,
  targetModules: ['q_proj'],
  adapterDtype: 'fp32',
  modulesToSave: [],
} as const;

/** A model of two billion parameters, sixteen layers, by a rough formula of its own: every lever moves it the right way. */
export function toyEstimate(values: PlanValues): Result<MemoryEstimate> {
  const parameters = 2e9;
  const trainable = values.method === 'full' ? parameters : 2e7;
  const perWeight = values.quantization ? 0.6 : bytesOf(values.dtype);
  const perState = /8bit/.test(values.optim) ? 2 : 8;
  const paged = /paged/.test(values.optim) ? 0.25 : 1;
  const tokens = values.perDeviceTrainBatchSize * values.maxLength;
  const layerBytes = tokens * 2048 * 2;
  const scores =
    values.attnImplementation === 'eager' ? values.perDeviceTrainBatchSize * values.maxLength ** 2 * 16 * 2 : 0;
  const kept = values.gradientCheckpointing.enabled
    ? layerBytes * 16 + layerBytes * 16 + scores
    : (layerBytes * 16 + scores) * 16;
  const logitBytes = { full: 10, fused_logits: 6, chunked_logits: 6, chunked: 1, fused: 0.5 }[values.lossImpl];
  const evalBytes = values.eval ? values.perDeviceEvalBatchSize * values.maxLength * 50_000 * logitBytes * 1.5 : 0;
  const gradients = trainable * bytesOf(values.dtype);
  const optimizerStates = trainable * perState * paged;
  const activations = kept;
  const logits = Math.max(tokens * 50_000 * logitBytes, evalBytes - kept - gradients);
  const weights = parameters * perWeight;
  const fragmentation = (activations + logits) * (/expandable_segments:True/.test(values.allocatorConf) ? 0.01 : 0.06);
  const cudaContext = 0.5 * GiB;
  const terms = {
    weights,
    gradients,
    optimizerStates,
    activations,
    logits,
    temporaryBuffers: 0,
    communicationBuffers: 0,
    inferenceEngine: 0,
    fragmentation,
    cudaContext,
  };
  const whole = Object.fromEntries(
    Object.entries(terms).map(([name, bytes]) => [name, Math.round(bytes)]),
  ) as unknown as MemoryEstimate['vram']['terms'];
  const device = Object.values(whole).reduce((sum, bytes) => sum + bytes, 0);
  const hostStates = trainable * perState * (1 - paged);
  return ok({
    params: { total: parameters, trainable },
    vram: {
      allocatedPeakBytes: device - whole.fragmentation - whole.cudaContext,
      reservedPeakBytes: device - whole.cudaContext,
      devicePeakBytes: device,
      lowBytes: Math.round(device * 0.97),
      highBytes: Math.round(device * 1.04),
      peakPhase: 'backward',
      terms: whole,
    },
    ram: {
      peakBytes: Math.round(3 * GiB + hostStates),
      neededBytes: Math.round(3 * GiB + hostStates),
      terms: { pythonStack: 3 * GiB, pagedStates: Math.round(hostStates) },
    },
    assumptions: [],
  });
}

export const usable = (bytes: number): MemoryBudget => ({
  capacityBytes: bytes + GiB,
  usedByOthersBytes: 0,
  headroomBytes: GiB,
  usableBytes: bytes,
});

export const surroundings = (changes: Partial<Surroundings> = {}): Surroundings => ({
  writable: () => true,
  packages: { bitsandbytes: true, flashAttn: false, liger: false },
  computeCapability: { major: 8, minor: 9 },
  hostRamBytes: undefined,
  platform: 'linux',
  ...changes,
});

export const request = (usableBytes: number, changes: Partial<PlanRequest> = {}): PlanRequest => ({
  values: toyValues(),
  budget: usable(usableBytes),
  policy: DEFAULT_POLICY,
  surroundings: surroundings(),
  estimate: toyEstimate,
  ...changes,
});

export const peak = (values: PlanValues): number => {
  const result = toyEstimate(values);
  if (!result.ok) throw new Error('the toy always answers');
  return result.value.vram.devicePeakBytes;
};
