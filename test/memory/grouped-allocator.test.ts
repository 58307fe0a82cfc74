import { describe, expect, it } from 'vitest';
import { CachingAllocator } from '../../src/memory/allocator/caching-allocator.ts';
import { GroupedAllocator } from '../../src/memory/allocator/grouped-allocator.ts';
import { simulatedReserve } from '../../src/memory/allocator/oracle.ts';
import { estimateMemory } from '../../src/memory/estimate-memory.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const MiB = 2 ** 20;
const units = (mebibytes: number): number => (mebibytes * MiB) / 512;

describe('equal requests at once', () => {
  for (const [size, count] of [
    [3, 17],
    [7, 5],
    [12, 9],
    [33, 40],
  ] as const) {
    it(`${count} of ${size} MiB take what they take one by one`, () => {
      const single = new CachingAllocator();
      for (let i = 0; i < count; i += 1) single.allocate(size * MiB);
      const grouped = new GroupedAllocator();
      grouped.allocate(units(size), count);
      expect(grouped.reserved).toBe(single.reserved);
    });
  }
  it('are served by what is free first, and the rest by new segments', () => {
    const allocator = new GroupedAllocator();
    allocator.release(allocator.allocate(units(100), 3));
    allocator.allocate(units(40), 7);
    // Two in each of the three, one in a segment of its own.
    expect(allocator.reserved).toBe(340 * MiB);
  });
  it('come back as a whole: halves of a group that went different ways too', () => {
    const allocator = new GroupedAllocator();
    const group = allocator.allocate(units(50), 6);
    allocator.release(group);
    const [four, two] = [allocator.allocate(units(50), 4), allocator.allocate(units(30), 2)];
    expect(allocator.reserved).toBe(300 * MiB);
    allocator.release(two);
    allocator.release(four);
    allocator.allocate(units(50), 6);
    expect(allocator.reserved).toBe(300 * MiB);
  });
  it('a block in use is in both halves when its segments are told apart', () => {
    const allocator = new GroupedAllocator();
    allocator.release(allocator.allocate(units(60), 4));
    const front = allocator.allocate(units(35), 4);
    const back = allocator.allocate(units(25), 1);
    allocator.release(front);
    allocator.release(back);
    allocator.allocate(units(60), 4);
    expect(allocator.reserved).toBe(240 * MiB);
  });
});

describe('reserved memory with equal layers drawn together', () => {
  const facts = factsOf({
    model_type: 'llama',
    hidden_size: 1792,
    intermediate_size: 4864,
    num_hidden_layers: 14,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    vocab_size: 50021,
  });
  const fsdp = { nodes: 1, processesPerNode: 4, strategy: 'fsdp2', offload: [] } as const;
  for (const [name, changes, share] of [
    ['full', {}, 0.05],
    ['full, checkpointed', { gradientCheckpointing: CHECKPOINTING, perDeviceTrainBatchSize: 3 }, 0.05],
    ['LoRA', { method: 'lora', lora: LORA }, 0.05],
    ['LoRA, checkpointed', { method: 'lora', lora: LORA, gradientCheckpointing: CHECKPOINTING }, 0.05],
    // Shards and joined gradients come and go layer by layer, which is drawn together less closely.
    ['sharded', { distributed: fsdp, perDeviceTrainBatchSize: 5 }, 0.1],
  ] as const) {
    it(`${name}: within ${share * 100} % of every allocation played one by one`, () => {
      const values = plan({ maxLength: 1536, ...changes });
      const [drawn, played] = [estimateMemory(values, facts), estimateMemory(values, facts, {}, simulatedReserve)];
      if (!drawn.ok || !played.ok) throw new Error('refused');
      const ratio = drawn.value.vram.reservedPeakBytes / played.value.vram.reservedPeakBytes;
      expect(Math.abs(ratio - 1)).toBeLessThan(share);
    });
  }
});
