import { describe, expect, it } from 'vitest';
import { CachingAllocator } from '../../src/memory/allocator/caching-allocator.ts';
import { loadShards } from '../../src/memory/allocator/load.ts';
import { PRODUCT_ID, UNIT } from '../../src/memory/allocator/script.ts';
import { simulateReserved } from '../../src/memory/allocator/simulate.ts';
import { estimateMemory, leastDeviceBytes } from '../../src/memory/index.ts';
import { planParameters } from '../../src/memory/parameters.ts';
import { lossSegmentBytes } from '../../src/memory/reserved.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const MiB = 2 ** 20;
const NF4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false } as const;
const CONFIG = {
  model_type: 'llama',
  hidden_size: 1536,
  intermediate_size: 4096,
  num_hidden_layers: 9,
  num_attention_heads: 12,
  num_key_value_heads: 4,
  vocab_size: 40009,
};

describe('the caching allocator', () => {
  it('takes 20 MiB for a request between 1 and 10 MiB and serves the next ones from it', () => {
    const allocator = new CachingAllocator();
    for (let i = 0; i < 4; i += 1) allocator.allocate(5 * MiB);
    expect(allocator.reserved).toBe(20 * MiB);
    allocator.allocate(2 * MiB);
    expect(allocator.reserved).toBe(40 * MiB);
  });
  it('rounds larger requests to 2 MiB', () => {
    const allocator = new CachingAllocator();
    allocator.allocate(11 * MiB + 512);
    expect(allocator.reserved).toBe(12 * MiB);
  });
  it('keeps requests of up to 1 MiB in segments of 2 MiB', () => {
    const allocator = new CachingAllocator();
    for (let i = 0; i < 3; i += 1) allocator.allocate(MiB);
    expect(allocator.reserved).toBe(4 * MiB);
  });
  it('takes the smallest free block that is large enough, and splits it', () => {
    const allocator = new CachingAllocator();
    const blocks = [60, 40, 50].map((size) => allocator.allocate(size * MiB));
    for (const block of blocks) allocator.release(block);
    allocator.allocate(38 * MiB);
    allocator.allocate(50 * MiB);
    allocator.allocate(60 * MiB);
    expect(allocator.reserved).toBe(150 * MiB);
    allocator.allocate(3 * MiB);
    expect(allocator.reserved).toBe(170 * MiB);
  });
  it('of equal free blocks takes the one that was made first', () => {
    const allocator = new CachingAllocator();
    const [first, second] = [allocator.allocate(24 * MiB), allocator.allocate(24 * MiB)];
    allocator.release(second);
    allocator.release(first);
    expect(allocator.allocate(24 * MiB)).toBe(first);
  });
  it('a block serves only the stream that it was made for', () => {
    const allocator = new CachingAllocator();
    allocator.release(allocator.allocate(70 * MiB, 1));
    allocator.allocate(70 * MiB);
    expect(allocator.reserved).toBe(140 * MiB);
    allocator.allocate(66 * MiB, 1);
    expect(allocator.reserved).toBe(140 * MiB);
  });
  it('joins free neighbours of one segment, but never two segments', () => {
    const allocator = new CachingAllocator();
    const whole = allocator.allocate(80 * MiB);
    allocator.release(whole);
    const parts = [30, 30, 20].map((size) => allocator.allocate(size * MiB));
    for (const part of [parts[0]!, parts[2]!, parts[1]!]) allocator.release(part);
    allocator.allocate(80 * MiB);
    expect(allocator.reserved).toBe(80 * MiB);
    const pair = [allocator.allocate(40 * MiB), allocator.allocate(40 * MiB)];
    for (const block of pair) allocator.release(block);
    allocator.allocate(80 * MiB);
    expect(allocator.reserved).toBe(240 * MiB);
  });
});

describe('many blocks', () => {
  it('of equal size: the one of the lowest address serves first, whatever the order they were given back in', () => {
    const allocator = new CachingAllocator();
    const [first, second, third] = [30, 30, 30].map((size) => allocator.allocate(size * MiB));
    for (const block of [second!, first!, third!]) allocator.release(block);
    expect([30, 30, 30].map((size) => allocator.allocate(size * MiB))).toEqual([first, second, third]);
    expect(allocator.reserved).toBe(90 * MiB);
  });
  it('more than it has room for at first', () => {
    const allocator = new CachingAllocator();
    const blocks = Array.from({ length: 3000 }, () => allocator.allocate(12 * MiB));
    expect(allocator.reserved).toBe(36_000 * MiB);
    for (const block of blocks) allocator.release(block);
    for (let i = 0; i < 3000; i += 1) allocator.allocate(12 * MiB);
    expect(allocator.reserved).toBe(36_000 * MiB);
  });
  it('a segment of its own serves others once it is free', () => {
    const allocator = new CachingAllocator();
    allocator.release(allocator.allocate(50 * MiB));
    const own = allocator.segment(33 * MiB);
    expect(allocator.reserved).toBe(84 * MiB);
    allocator.release(own);
    allocator.allocate(32 * MiB);
    allocator.allocate(50 * MiB);
    expect(allocator.reserved).toBe(84 * MiB);
  });
});

describe('a simulated step', () => {
  const nothing = {
    otherBytes: 0,
    states: [],
    temporaries: [],
    steps: 2,
    gradientShare: undefined,
    lossSegmentBytes: 0,
  };
  const mebibytes = (count: number): number => (count * MiB) / UNIT;
  const entry = (log: number[], kind: 'forward' | 'backward', instance = 0) => ({
    instance,
    times: 1,
    log,
    resultId: 0,
    kind,
  });
  const reserved = (script: ReturnType<typeof entry>[], changes: object = {}) =>
    simulateReserved({ ...nothing, load: () => {}, workspaceBytes: 9 * MiB, script, ...changes }) / MiB;

  it('gives each thread a workspace at its first product, and keeps it', () => {
    const product = [PRODUCT_ID, 0];
    expect(reserved([entry([3, mebibytes(30), -3, 0], 'forward')])).toBe(30);
    const forward = entry([3, mebibytes(30), ...product, -3, 0], 'forward');
    expect(reserved([forward])).toBe(50);
    // The second one fits beside the first.
    expect(reserved([forward, entry([4, mebibytes(30), ...product, -4, 0], 'backward')])).toBe(50);
  });
  it('gradients of a sharded layer are joined, and shards of them lie on another stream', () => {
    const backward = entry([3, mebibytes(40), 4, mebibytes(40)], 'backward', 1);
    expect(reserved([backward])).toBe(80);
    expect(reserved([backward], { gradientShare: 0.25 })).toBe(80 + 80 + 20);
  });
  it('gradients that go into a bucket at once make room for those of the next layer, of the head too', () => {
    const one = [3, mebibytes(40), 4, mebibytes(40)];
    const script = [entry(one, 'backward', 2), entry(one, 'backward', 1), entry([3, mebibytes(40)], 'backward', 0)];
    expect(reserved(script)).toBe(200);
    expect(reserved(script, { gradientShare: 0 })).toBe(80);
  });
  it('what was loaded before is there throughout', () => {
    const load = (allocator: CachingAllocator): void => void allocator.allocate(50 * MiB);
    expect(reserved([entry([3, mebibytes(30), -3, 0], 'forward')], { load, otherBytes: MiB })).toBe(81);
  });
});

describe('reserved memory of a step', () => {
  const facts = factsOf(CONFIG);
  const vram = (changes: Parameters<typeof plan>[0]) => {
    const estimate = estimateMemory(plan({ maxLength: 1024, ...changes }), facts);
    if (!estimate.ok) throw new Error(estimate.error[0]!.message);
    return estimate.value.vram;
  };
  it('is never less than what is allocated, and the terms add up to the device peak', () => {
    for (const changes of [{}, { gradientCheckpointing: CHECKPOINTING }, { optim: 'adamw_torch' }, { optim: 'sgd' }]) {
      const { allocatedPeakBytes, reservedPeakBytes, devicePeakBytes, terms, lowBytes, highBytes } = vram(changes);
      expect(reservedPeakBytes).toBeGreaterThanOrEqual(allocatedPeakBytes);
      expect(Object.values(terms).reduce((sum, bytes) => sum + bytes, 0)).toBe(devicePeakBytes);
      expect(lowBytes).toBeLessThan(devicePeakBytes);
      expect(highBytes).toBeGreaterThan(devicePeakBytes);
    }
  });
  it('is never less than the bound that a search looks at first', () => {
    for (const changes of [
      {},
      { gradientCheckpointing: CHECKPOINTING },
      { allocatorConf: 'expandable_segments:True' },
    ]) {
      const { allocatedPeakBytes, devicePeakBytes, terms } = vram(changes);
      const least = leastDeviceBytes(plan({ maxLength: 1024, ...changes }), facts);
      expect(least).toEqual({ ok: true, value: allocatedPeakBytes + terms.cudaContext });
      expect(devicePeakBytes).toBeGreaterThanOrEqual(allocatedPeakBytes + terms.cudaContext);
    }
  });
  it('a bound is refused for what an estimate is refused for', () => {
    const values = plan({ maxLength: 0 });
    const [least, estimate] = [leastDeviceBytes(values, facts), estimateMemory(values, facts)];
    expect(least.ok).toBe(false);
    expect(least).toEqual(estimate);
  });
  it('optimizer states that settle among cached activations cost room in the next step', () => {
    const wasted = (optim: string): number => vram({ optim, gradientCheckpointing: CHECKPOINTING }).terms.fragmentation;
    expect(wasted('adamw_torch_fused')).toBeGreaterThan(wasted('sgd'));
  });
  it('weights come unit by unit where they are sharded, quantised or not', () => {
    const loaded = (values: Parameters<typeof plan>[0]): number => {
      const { description } = factsOf({ ...CONFIG, num_hidden_layers: 42 });
      const parameters = planParameters(description, plan(values));
      const allocator = new CachingAllocator();
      loadShards(allocator, { description, plan: parameters }, { share: 1 / 8, storesFp32: false });
      return allocator.reserved / parameters.residentBytes;
    };
    expect(loaded({ method: 'qlora', quantization: NF4, lora: LORA })).toBeLessThan(0.9);
    expect(loaded({ method: 'lora', lora: LORA })).toBeLessThan(0.9);
  });
  it('losses of transformers before 4.49 leave a segment of the logits, unless the model scales them', () => {
    const old = { versions: { torch: '2.4', transformers: '4.45', peft: '0.13', trl: '0.11' } };
    const rows = 4 * 1024 * CONFIG.vocab_size * 4;
    const scaled = factsOf({ ...CONFIG, model_type: 'granite', logits_scaling: 5 });
    const values = plan({ maxLength: 1024, perDeviceTrainBatchSize: 4, ...old });
    expect(lossSegmentBytes(values, facts, 1)).toBe(rows / 2);
    expect(lossSegmentBytes({ ...values, lossImpl: 'fused_logits' }, facts, 1)).toBe(rows);
    expect(lossSegmentBytes({ ...values, lossImpl: 'fused' }, facts, 1)).toBe(0);
    expect(lossSegmentBytes(values, scaled, 1)).toBe(0);
    expect(lossSegmentBytes(plan({ maxLength: 1024 }), facts, 1)).toBe(0);
  });
  it('expandable segments leave nothing stuck', () => {
    const conf = { allocatorConf: 'expandable_segments:True' };
    const { allocatedPeakBytes, reservedPeakBytes } = vram(conf);
    expect(reservedPeakBytes / allocatedPeakBytes).toBeLessThan(1.03);
  });
});
