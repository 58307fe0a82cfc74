import { describe, expect, it } from 'vitest';
import { estimateMemory } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const GiB = 2 ** 30;
const A100 = { computeCapability: { major: 8, minor: 0 } };
const GROWN = { ...SMALL_LLAMA, hidden_size: 3072, intermediate_size: 8448, num_attention_heads: 24, head_dim: 128 };

function vramOf(changes: Partial<PlanValues> = {}, device = {}, facts = factsOf(GROWN)) {
  const estimate = estimateMemory(plan(changes), facts, device);
  if (!estimate.ok) throw new Error(estimate.error[0]!.message);
  const { vram } = estimate.value;
  return { ...vram, allocated: vram.intervals!.allocated, reserved: vram.intervals!.reserved };
}
const widthOf = ({ lowBytes, highBytes }: { lowBytes: number; highBytes: number }): number =>
  (highBytes - lowBytes) / ((highBytes + lowBytes) / 2);

const FSDP = { nodes: 1, processesPerNode: 4, strategy: 'fsdp2', offload: [] } as const;

describe('intervals', () => {
  it.each([
    {},
    { gradientCheckpointing: CHECKPOINTING, optim: 'adamw_torch' },
    { method: 'lora', lora: LORA },
    { distributed: FSDP },
    { distributed: FSDP, lossImpl: 'chunked_logits' },
  ] as const)('hold the estimate, in whole bytes, within a quarter of their middle (%#)', (changes) => {
    for (const device of [{}, A100]) {
      const vram = vramOf(changes, device);
      const all = [
        [vram.allocated, vram.allocatedPeakBytes],
        [vram.reserved, vram.reservedPeakBytes],
        [vram, vram.devicePeakBytes],
      ] as const;
      for (const [interval, estimate] of all) {
        expect(interval.lowBytes).toBeLessThanOrEqual(estimate);
        expect(interval.highBytes).toBeGreaterThan(estimate);
        expect(Number.isSafeInteger(interval.lowBytes) && Number.isSafeInteger(interval.highBytes)).toBe(true);
        expect(widthOf(interval)).toBeLessThanOrEqual(0.2501);
      }
    }
  });
  it('each assumption adds its own width', () => {
    const flash = { attnImplementation: 'flash_attention_2' } as const;
    const width = (changes: Partial<PlanValues>): number => widthOf(vramOf({ ...flash, ...changes }).allocated);
    expect(width({ distributed: FSDP })).toBeGreaterThan(width({}) + 0.1);
    expect(width({ lossImpl: 'chunked_logits' })).toBeGreaterThan(width({ lossImpl: 'chunked' }) + 0.1);
    expect(widthOf(vramOf({ attnImplementation: 'sdpa', maxLength: 2048 }).allocated)).toBeGreaterThan(
      width({ maxLength: 2048 }),
    );
  });
  it('a model that its own code describes may be wider', () => {
    const facts = { ...factsOf(GROWN), uncertainty: 0.2 };
    expect(widthOf(vramOf({}, A100, facts).allocated)).toBeGreaterThan(0.3);
  });
  it('a known card bounds them: what is only cached is given back when it is full', () => {
    const free = vramOf({}, A100);
    const between = Math.round((free.allocatedPeakBytes + free.devicePeakBytes) / 2) + 0.3 * GiB;
    const tight = vramOf({}, { ...A100, capacityBytes: Math.round(between) });
    // What does not fit the card is still said: the middle lies inside.
    expect(tight.highBytes).toBe(Math.max(Math.round(between), free.devicePeakBytes));
    expect(tight.lowBytes).toBeLessThanOrEqual(free.lowBytes);
    expect(tight.devicePeakBytes).toBe(free.devicePeakBytes);
    expect(vramOf({}, { ...A100, capacityBytes: 900 * GiB }).highBytes).toBe(free.highBytes);
  });
});

describe('a step of DeepSpeed', () => {
  const zero = (strategy: 'zero2' | 'zero3' | 'fsdp2', offload: readonly 'optimizer'[] = []): Partial<PlanValues> => ({
    mixedPrecision: 'bf16',
    perDeviceTrainBatchSize: 1,
    maxLength: 16,
    distributed: { nodes: 1, processesPerNode: 2, strategy, offload },
  });
  it('makes one flat 16-bit and one fp32 copy of the gradients that a device has kept', () => {
    const { vram, params } = ((): { vram: ReturnType<typeof vramOf>; params: number } => {
      const estimate = estimateMemory(plan(zero('zero2')), factsOf(GROWN));
      if (!estimate.ok) throw new Error(estimate.error[0]!.message);
      return { vram: vramOf(zero('zero2')), params: estimate.value.params.trainable };
    })();
    expect(vram.peakPhase).toBe('optimizer');
    expect(vram.terms.temporaryBuffers / ((params / 2) * 6)).toBeCloseTo(1, 3);
    expect(vramOf(zero('zero2', ['optimizer'])).terms.temporaryBuffers).toBeLessThan(params);
    expect(vramOf(zero('fsdp2')).terms.temporaryBuffers).toBeLessThan((params / 2) * 6);
  });
});
