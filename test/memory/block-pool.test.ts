import { describe, expect, it } from 'vitest';
import { BlockPool } from '../../src/memory/allocator/block-pool.ts';
import { CachingAllocator } from '../../src/memory/allocator/caching-allocator.ts';
import { simulatedReserve } from '../../src/memory/allocator/oracle.ts';
import { reservedBytes } from '../../src/memory/allocator/reserve.ts';
import { PRODUCT_ID, type ScriptEntry } from '../../src/memory/allocator/script.ts';
import { simulateReserved } from '../../src/memory/allocator/simulate.ts';
import { estimateMemory } from '../../src/memory/estimate-memory.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const MiB = 2 ** 20;
const units = (mebibytes: number): number => (mebibytes * MiB) / 512;

function pool(sizes: readonly number[] = []): BlockPool {
  const made = new BlockPool();
  made.clear(sizes);
  return made;
}

/** Numbers from 0 to 1, the same ones for a seed. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

describe('equal requests at once', () => {
  for (const [size, count] of [
    [3, 17],
    [7, 5],
    [12, 9],
    [11.25, 6],
    [33, 40],
  ] as const) {
    it(`${count} of ${size} MiB take what they take one by one, for good or not`, () => {
      const single = new CachingAllocator();
      for (let i = 0; i < count; i += 1) single.allocate(size * MiB);
      const [used, held] = [pool(), pool()];
      used.allocateMany(units(size), count);
      held.hold(units(size), count);
      expect([used.reserved, held.reserved]).toEqual([single.reserved, single.reserved]);
    });
  }
  it('are served by what is free first, and the rest by new segments', () => {
    const allocator = pool();
    allocator.release(allocator.allocateMany(units(100), 3));
    allocator.allocateMany(units(40), 7);
    // Two in each of the three, one in a segment of its own.
    expect(allocator.reserved).toBe(340 * MiB);
  });
  it('come back as a whole: halves of a group that went different ways too', () => {
    const allocator = pool();
    allocator.release(allocator.allocateMany(units(50), 6));
    const [four, two] = [allocator.allocateMany(units(50), 4), allocator.allocateMany(units(30), 2)];
    expect(allocator.reserved).toBe(300 * MiB);
    allocator.release(two);
    allocator.release(four);
    allocator.allocateMany(units(50), 6);
    expect(allocator.reserved).toBe(300 * MiB);
  });
  it('a block in use is in both halves when its segments are told apart', () => {
    const allocator = pool();
    allocator.release(allocator.allocateMany(units(60), 4));
    const front = allocator.allocateMany(units(35), 4);
    const back = allocator.allocate(units(25), allocator.rungOf(units(25)));
    allocator.release(front);
    allocator.release(back);
    allocator.allocateMany(units(60), 4);
    expect(allocator.reserved).toBe(240 * MiB);
  });
});

describe('blocks of a step', () => {
  const sizes = [units(14), units(26), units(40)];
  it('what is forgotten serves nothing until it is freed, whatever the order', () => {
    const orders = [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ] as const;
    for (const order of orders) {
      const allocator = pool(sizes);
      allocator.release(allocator.allocate(units(60), 4));
      const parts = [14, 26, 20].map((size) => allocator.allocate(units(size), allocator.rungOf(units(size))));
      for (const part of order) allocator.forget(parts[part]!);
      allocator.allocate(units(26), 3);
      expect(allocator.reserved).toBe(86 * MiB);
      allocator.freeForgotten();
      allocator.allocate(units(60), 4);
      expect(allocator.reserved).toBe(86 * MiB);
    }
  });
  it('a sweep frees all but what stays for good', () => {
    const allocator = pool(sizes);
    allocator.release(allocator.allocate(units(40), 4));
    allocator.allocate(units(14), 2);
    allocator.keep(allocator.allocate(units(26), 3));
    allocator.sweep();
    allocator.allocate(units(14), 2);
    expect(allocator.reserved).toBe(40 * MiB);
    allocator.allocate(units(26), 3);
    expect(allocator.reserved).toBe(66 * MiB);
  });
  it('a block asked for and given back at once takes a segment only where nothing is large enough', () => {
    const allocator = pool(sizes);
    allocator.release(allocator.allocate(units(26), 3));
    allocator.ensure(units(14), 2);
    expect(allocator.reserved).toBe(26 * MiB);
    allocator.ensure(units(40), 4);
    expect(allocator.reserved).toBe(66 * MiB);
  });
  it('a block that is given back for an equal request stays where it is, unless a smaller one is free', () => {
    const allocator = pool(sizes);
    allocator.release(allocator.allocate(units(41), 4));
    // Of 41 MiB, as the rest is too small to be cut off.
    const block = allocator.allocate(units(40), 4);
    expect(allocator.reuse(block, units(40), 4)).toBe(block);
    allocator.leaveSegment(units(40));
    expect(allocator.reuse(block, units(40), 4)).not.toBe(block);
    expect(allocator.reserved).toBe(82 * MiB);
  });
  it('more blocks than there was room for at first, cut from one another', () => {
    const allocator = pool();
    allocator.release(allocator.allocate(units(6000), 1));
    const blocks = Array.from({ length: 2000 }, () => allocator.allocate(units(3), 1));
    for (const block of blocks) allocator.release(block);
    allocator.allocate(units(6000), 1);
    expect(allocator.reserved).toBe(6000 * MiB);
  });
});

/** Which of equal blocks is taken is a matter of addresses, which are not followed here. */
const TIES = 1e-9;

describe('requests at random', () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    it(`${seed}: one by one take what PyTorch's allocator takes`, () => {
      const next = numbers(seed);
      // No two are equal: then it does not matter which of equal blocks is taken.
      const sizes = Array.from({ length: 400 }, (_, i) => units(1) + 1 + Math.floor(next() ** 3 * 200) * 400 + i);
      const rungs = sizes.filter((_, i) => i % 16 === 0).sort((a, b) => a - b);
      const [quick, whole] = [pool(rungs), new CachingAllocator()];
      const blocks: [number, number][] = [];
      for (const size of sizes) {
        if (blocks.length > 0 && next() < 0.45) {
          const [[a, b]] = blocks.splice(Math.floor(next() * blocks.length), 1) as [[number, number]];
          quick.release(a);
          whole.release(b);
        } else {
          blocks.push([quick.allocate(size, quick.rungOf(size)), whole.allocate(size * 512)]);
        }
      }
      expect(Math.abs(quick.reserved / whole.reserved - 1)).toBeLessThan(TIES);
    });
  }
});

/** Three equal layers: each of them is played event by event. What they keep comes back on the way back, but for gradients. */
function layersAtRandom(next: () => number): ScriptEntry[] {
  let id = 3;
  let last = 0;
  const size = (): number => {
    last += 1;
    return next() < 0.2 ? 900 + last : 2050 + Math.floor(next() * 60_000) * 7 + last;
  };
  const half = (kept: number, brought: readonly [number, number][]): [number[], [number, number][]] => {
    const log: number[] = [PRODUCT_ID, 0];
    const live = [...brought];
    const own: [number, number][] = [];
    for (let i = 0; i < 30; i += 1) {
      if (live.length > 0 && next() < 0.5) {
        const [[freed, bytes]] = live.splice(Math.floor(next() * live.length), 1) as [[number, number]];
        log.push(-freed, bytes);
        // An equal one at once, as when a result takes the room of what it was made from.
        if (next() < 0.3) {
          live.push([id, bytes]);
          log.push(id, bytes);
          id += 1;
        }
      } else {
        const one: [number, number] = [id, size()];
        id += 1;
        log.push(...one);
        (own.length < kept ? own : live).push(one);
      }
    }
    for (const [freed, bytes] of live) log.push(-freed, bytes);
    return [log, own];
  };
  const [forward, kept] = half(6, []);
  const [backward] = half(3, kept);
  return [
    { instance: 1, times: 3, log: forward, resultId: 0, kind: 'forward' },
    { instance: 1, times: 3, log: backward, resultId: 0, kind: 'backward' },
  ];
}

describe('a step at random', () => {
  const others = { otherBytes: 0, steps: 1, gradientShare: undefined, workspaceBytes: 9 * MiB, lossSegmentBytes: 0 };
  for (let seed = 1; seed <= 40; seed += 1) {
    it(`${seed}: layers that are played event by event take what all their requests take`, () => {
      const script = layersAtRandom(numbers(seed));
      const states = [{ bytes: 22 * MiB, count: 3 }];
      const temporaries = [{ bytes: 5 * MiB, count: 7 }];
      const input = { ...others, script, states, temporaries };
      const quick = reservedBytes({ ...input, lead: 1, load: (pools) => pools.hold(30 * MiB, 2) });
      const whole = simulateReserved({
        ...input,
        load: (allocator) => {
          for (let i = 0; i < 2; i += 1) allocator.allocate(30 * MiB);
        },
      });
      expect(Math.abs(quick / whole - 1)).toBeLessThan(TIES);
      expect(reservedBytes({ ...input, lead: 1, load: (pools) => pools.hold(30 * MiB, 2) })).toBe(quick);
    });
  }
  it('requests beyond any card end', () => {
    const log = [3, 2 ** 33, 4, 2 ** 32, -3, 2 ** 33, 5, 2 ** 40, -4, 2 ** 32];
    const script: ScriptEntry[] = [{ instance: 1, times: 40, log, resultId: 0, kind: 'forward' }];
    const input = { ...others, script, states: [], temporaries: [], lead: 1, steps: 2 };
    expect(reservedBytes({ ...input, load: () => {} })).toBeGreaterThan(2 ** 40);
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
