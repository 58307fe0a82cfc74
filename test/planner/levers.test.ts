import { describe, expect, it } from 'vitest';
import { LEVERS } from '../../src/planner/index.ts';
import { availableOptions } from '../../src/planner/levers/availability.ts';
import { priceMove } from '../../src/planner/levers/index.ts';
import { NEUTRAL_VALUES, type PlanValues } from '../../src/spec/index.ts';
import { surroundings, toyLora, toyValues } from './toy.ts';

const options = (id: string, values: Partial<PlanValues>, around: Parameters<typeof surroundings>[0] = {}) =>
  availableOptions(LEVERS.find((lever) => lever.id === id)!, toyValues(values), surroundings(around));
const withFlash = { packages: { bitsandbytes: true, flashAttn: true, liger: true } } as const;
const inside = (
  strategy: PlanValues['distributed']['strategy'],
  offload: PlanValues['distributed']['offload'] = [],
) => ({
  distributed: { nodes: 1, processesPerNode: 4, strategy, offload },
});

describe('levers', () => {
  it.each<[string, Partial<PlanValues>, unknown]>([
    [
      '8 × 1',
      { perDeviceTrainBatchSize: 8, gradientAccumulationSteps: 1 },
      [
        [4, 2],
        [2, 4],
        [1, 8],
      ],
    ],
    [
      '6 × 2',
      { perDeviceTrainBatchSize: 6, gradientAccumulationSteps: 2 },
      [
        [4, 3],
        [3, 4],
        [2, 6],
        [1, 12],
      ],
    ],
    [
      '7 × 3',
      { perDeviceTrainBatchSize: 7, gradientAccumulationSteps: 3 },
      [
        [3, 7],
        [1, 21],
      ],
    ],
    ['1 × 9', { perDeviceTrainBatchSize: 1, gradientAccumulationSteps: 9 }, []],
  ])('micro-batch: %s through divisors', (_, values, expected) => {
    const found = options('micro-batch', values) as Partial<PlanValues>[];
    expect(found.map((set) => [set.perDeviceTrainBatchSize, set.gradientAccumulationSteps])).toEqual(expected);
  });

  it.each<[string, Partial<PlanValues>, unknown]>([
    ['eager', { attnImplementation: 'eager' }, [{ attnImplementation: 'sdpa' }]],
    ['sdpa', { attnImplementation: 'sdpa' }, []],
    ['flex attention', { attnImplementation: 'flex_attention' }, []],
  ])('attention: %s', (_, values, expected) => expect(options('attention', values)).toEqual(expected));

  it.each<[string, Partial<PlanValues>, Parameters<typeof surroundings>[0], unknown]>([
    ['eager', { attnImplementation: 'eager' }, withFlash, ['flash_attention_2']],
    ['without the package', {}, {}, "flash_attn does not import in the trainer's Python"],
    [
      'on Turing',
      {},
      { ...withFlash, computeCapability: { major: 7, minor: 5 } },
      'flash attention needs compute capability 8.0',
    ],
    [
      'on a card nobody described',
      {},
      { ...withFlash, computeCapability: undefined },
      'the compute capability of the card is not known',
    ],
    ['in fp32', { dtype: 'fp32', mixedPrecision: 'no' }, withFlash, 'flash attention needs bf16 or fp16'],
    ['in fp32 under autocast', { dtype: 'fp32' }, withFlash, ['flash_attention_2']],
    ['flash attention 3 already', { attnImplementation: 'flash_attention_3' }, withFlash, []],
  ])('flash-attention: %s', (_, values, around, expected) => {
    const found = options('flash-attention', values, around);
    expect(typeof found === 'string' ? found : found.map((set) => set.attnImplementation)).toEqual(expected);
  });

  it.each<[string, string, Partial<PlanValues>, Parameters<typeof surroundings>[0], unknown]>([
    ['loss', 'full logits', {}, {}, ['chunked']],
    ['loss', 'chunked already', { lossImpl: 'chunked' }, {}, []],
    ['fused-loss', 'full logits', {}, withFlash, ['fused']],
    ['fused-loss', 'chunked', { lossImpl: 'chunked' }, withFlash, ['fused']],
    ['fused-loss', 'no package', {}, {}, "liger_kernel does not import in the trainer's Python"],
    [
      'loss',
      'an adapter on the head',
      { method: 'lora', lora: { ...toyLora, targetModules: ['q_proj', 'lm_head'] } },
      {},
      'the output head is trained by an adapter',
    ],
    [
      'fused-loss',
      'a trained head',
      { method: 'lora', lora: { ...toyLora, modulesToSave: ['lm_head'] } },
      withFlash,
      'the output head is trained by an adapter',
    ],
    [
      'loss',
      'an adapter on a module named alike',
      { method: 'lora', lora: { ...toyLora, targetModules: ['lm_head_norm'] } },
      {},
      ['chunked'],
    ],
  ])('%s: %s', (lever, _, values, around, expected) => {
    const found = options(lever, values, around);
    expect(typeof found === 'string' ? found : found.map((set) => set.lossImpl)).toEqual(expected);
  });

  it.each<[string, Partial<PlanValues>, unknown]>([
    ['adamw', { optim: 'adamw_torch_fused' }, ['adamw_bnb_8bit']],
    ['lion', { optim: 'lion_32bit' }, ['lion_8bit']],
    ['8-bit already', { optim: 'adamw_8bit' }, []],
    ['sgd has no states', { optim: 'sgd' }, []],
    ['ZeRO-2', { ...inside('zero2') }, ['adamw_bnb_8bit']],
    ['ZeRO-3', { ...inside('zero3') }, 'an 8-bit optimizer does not go with parameters sharded by zero3'],
    ['FSDP', { ...inside('fsdp2') }, 'an 8-bit optimizer does not go with parameters sharded by fsdp2'],
    ['ZeRO-2 offload', { ...inside('zero2', ['optimizer']) }, 'an 8-bit optimizer does not go with optimizer offload'],
    ['offloaded activations', { ...inside('ddp', ['activations']) }, ['adamw_bnb_8bit']],
  ])('optimizer-8bit: %s', (_, values, expected) => {
    const found = options('optimizer-8bit', values);
    expect(typeof found === 'string' ? found : found.map((set) => set.optim)).toEqual(expected);
  });

  it.each<[string, string, Parameters<typeof surroundings>[0], unknown]>([
    ['adamw', 'adamw_torch', {}, ['paged_adamw_32bit']],
    ['8-bit adamw', 'adamw_bnb_8bit', {}, ['paged_adamw_8bit']],
    ['paged already', 'paged_adamw_32bit', {}, []],
    ['Windows', 'adamw_torch', { platform: 'win32' }, 'works on linux only'],
  ])('optimizer-paged: %s', (_, optim, around, expected) => {
    const found = options('optimizer-paged', { optim }, around);
    expect(typeof found === 'string' ? found : found.map((set) => set.optim)).toEqual(expected);
  });

  it.each<[string, Partial<PlanValues>, unknown]>([
    ['nothing set', {}, ['expandable_segments:True']],
    ['merges', { allocatorConf: 'max_split_size_mb:128' }, ['max_split_size_mb:128,expandable_segments:True']],
    [
      'keeps a list together',
      { allocatorConf: 'roundup_power2_divisions:[256:1,512:2,>:4],garbage_collection_threshold:0.8' },
      ['roundup_power2_divisions:[256:1,512:2,>:4],garbage_collection_threshold:0.8,expandable_segments:True'],
    ],
    ['on already', { allocatorConf: 'expandable_segments:true' }, []],
    [
      'turned off on purpose',
      { allocatorConf: 'expandable_segments:False' },
      'the launch turns expandable segments off',
    ],
    ['another backend', { allocatorConf: 'backend:cudaMallocAsync' }, 'the cudaMallocAsync backend has no segments'],
    ['vLLM beside the trainer', { objective: 'grpo' }, 'expandable segments break a vLLM engine that shares the card'],
  ])('allocator: %s', (_, values, expected) => {
    const found = options('allocator', values);
    expect(typeof found === 'string' ? found : found.map((set) => set.allocatorConf)).toEqual(expected);
  });

  it.each<[string, Partial<PlanValues>, unknown]>([
    ['FSDP 1', { ...inside('fsdp1') }, [true]],
    ['FSDP 2', { ...inside('fsdp2') }, [true]],
    ['reduced each time already', { ...inside('fsdp2'), syncsEachMicroBatch: true }, []],
    ['DDP keeps whole gradients anyway', { ...inside('ddp') }, []],
    ['DeepSpeed reduces as it goes', { ...inside('zero2') }, []],
    [
      'a Trainer that passes over it',
      { ...inside('fsdp1'), versions: { ...NEUTRAL_VALUES.versions, transformers: '4.57' } },
      'transformers before 5.2 reduces after the last micro batch, whatever it is told',
    ],
  ])('synced-accumulation: %s', (_, values, expected) => {
    const found = options('synced-accumulation', values);
    expect(typeof found === 'string' ? found : found.map((set) => set.syncsEachMicroBatch)).toEqual(expected);
  });

  it('allocator: Linux only', () => {
    expect(options('allocator', {}, { platform: 'darwin' })).toBe('works on linux only');
  });

  it('qlora: never for a full fine-tune, never over shards', () => {
    expect(options('qlora', { method: 'full' })).toEqual([]);
    expect(options('qlora', { method: 'lora', lora: toyLora, ...inside('zero3') })).toBe(
      'a 4-bit base does not go with parameters sharded by zero3',
    );
    expect(options('qlora', { method: 'lora', lora: toyLora })).toMatchObject([{ method: 'qlora' }]);
  });

  it('qlora: takes the preparation the trainer can be told', () => {
    const writable = (setting: string, to: unknown) =>
      setting !== 'quantization' ||
      (to as { upcastRestToFp32: boolean }).upcastRestToFp32 === false ||
      'has no such step';
    expect(options('qlora', { method: 'lora', lora: toyLora }, { writable })).toMatchObject([
      { quantization: { upcastRestToFp32: false } },
    ]);
  });

  it('a package nobody could ask for: bitsandbytes counts as there, what few have does not', () => {
    const packages = { bitsandbytes: 'unknown', flashAttn: 'unknown', liger: 'unknown' } as const;
    expect(options('qlora', { method: 'lora', lora: toyLora }, { packages })).toHaveLength(1);
    expect(options('flash-attention', {}, { packages })).toBe('whether flash_attn imports is not known');
    expect(options('fused-loss', {}, { packages })).toBe('whether liger_kernel imports is not known');
  });

  it('eval-batch: only where evaluation runs', () => {
    expect(options('eval-batch', { eval: false, perDeviceEvalBatchSize: 8 })).toEqual([]);
    expect(options('eval-batch', { eval: true, perDeviceEvalBatchSize: 12 })).toEqual(
      [6, 3, 1].map((perDeviceEvalBatchSize) => ({ perDeviceEvalBatchSize })),
    );
  });

  it('frozen-base-16bit: only a frozen fp32 base', () => {
    expect(options('frozen-base-16bit', { method: 'full', dtype: 'fp32' })).toEqual([]);
    expect(options('frozen-base-16bit', { method: 'lora', lora: toyLora, dtype: 'bf16' })).toEqual([]);
    expect(options('frozen-base-16bit', { method: 'lora', lora: toyLora, dtype: 'fp32' })).toEqual([{ dtype: 'bf16' }]);
  });

  it('gradient-checkpointing: not twice', () => {
    const on = { enabled: true, useReentrant: true, everyNLayers: 2, offload: false };
    expect(options('gradient-checkpointing', { gradientCheckpointing: on })).toEqual([]);
  });

  it('lora: trains the head of a classifier too', () => {
    expect(options('lora', { objective: 'classification' })).toMatchObject([{ lora: { modulesToSave: ['score'] } }]);
    expect(options('lora', {})).toMatchObject([
      { method: 'lora', lora: { r: 16, targetModules: 'all-linear', modulesToSave: [] } },
    ]);
  });

  it('a smaller micro batch is never predicted faster', () => {
    const lever = LEVERS.find(({ id }) => id === 'micro-batch')!;
    const from = toyValues({ perDeviceTrainBatchSize: 16, maxLength: 300 });
    const factors = [8, 4, 2, 1].map(
      (micro) => priceMove(lever, from, { ...from, perDeviceTrainBatchSize: micro }, undefined).factor,
    );
    expect(factors).toEqual([...factors].sort((a, b) => a - b));
    expect(factors[0]).toBeGreaterThan(1);
  });
});

it('micro-batch: an absurd batch has its divisors found by pairs', () => {
  const found = options('micro-batch', { perDeviceTrainBatchSize: 300_000_000, gradientAccumulationSteps: 1 });
  if (typeof found === 'string') throw new Error(found);
  expect(found.length).toBeGreaterThan(0);
  for (const { perDeviceTrainBatchSize, gradientAccumulationSteps } of found) {
    expect(perDeviceTrainBatchSize! * gradientAccumulationSteps!).toBe(300_000_000);
  }
});
