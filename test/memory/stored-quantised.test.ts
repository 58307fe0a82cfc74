import { describe, expect, it } from 'vitest';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import { describeModel } from '../../src/model/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const stored = (quantization: Readonly<Record<string, unknown>>) => ({
  ...SMALL_LLAMA,
  quantization_config: quantization,
});
const BNB4 = {
  quant_method: 'bitsandbytes',
  load_in_4bit: true,
  bnb_4bit_quant_type: 'nf4',
  bnb_4bit_compute_dtype: 'bfloat16',
};
const adapter = { method: 'lora', lora: LORA } as const;

const estimate = (
  config: Readonly<Record<string, unknown>>,
  changes: Partial<PlanValues> = adapter,
): MemoryEstimate => {
  const result = estimateMemory(plan(changes), factsOf(config));
  if (!result.ok) throw new Error(result.error.map(({ message }) => message).join('; '));
  return result.value;
};
const weights = (config: Readonly<Record<string, unknown>>): number => estimate(config).vram.terms.weights;

/** Linear weights of the layers: q and o, k and v, three of the feed-forward block. */
const LINEAR = 7 * (2 * 768 * 768 + 2 * 768 * 256 + 3 * 768 * 2304);

describe('checkpoints that are stored quantised', () => {
  const whole = weights(SMALL_LLAMA);
  const saved = (config: Readonly<Record<string, unknown>>): number => (whole - weights(config)) / LINEAR;

  it.each([
    ['nf4, scales in fp32', BNB4, 2 - 0.5 - 4 / 64],
    ['nf4, double quantisation', { ...BNB4, bnb_4bit_use_double_quant: true }, 2 - 0.5 - 1 / 64],
    ['int8', { quant_method: 'bitsandbytes', load_in_8bit: true }, 2 - 1],
    ['gptq', { quant_method: 'gptq', bits: 4, group_size: 128 }, 2 - 0.5 - 2.5 / 128],
    ['gptq in groups of 32', { quant_method: 'gptq', bits: 4, group_size: 32 }, 2 - 0.5 - 2.5 / 32],
    ['awq, 8 bits', { quant_method: 'awq', bits: 8, group_size: 64 }, 2 - 1 - 3 / 64],
  ])('%s', (_, quantization, bytes) => {
    expect(saved(stored(quantization))).toBeGreaterThan(bytes * 0.985);
    expect(saved(stored(quantization))).toBeLessThanOrEqual(bytes * 1.001);
  });

  it('is the base of any method, as if the launch had asked for it', () => {
    const asked = estimate(SMALL_LLAMA, {
      method: 'qlora',
      lora: LORA,
      quantization: { bits: 4, quantType: 'nf4', doubleQuant: false, computeDtype: 'bf16', upcastRestToFp32: false },
    });
    expect(estimate(stored(BNB4)).vram).toEqual(asked.vram);
    const full = estimateMemory(plan(), factsOf(stored(BNB4)));
    expect(full.ok ? '' : full.error[0]!.code).toBe('quantised-full');
  });

  it('mxfp4 is dequantised on loading, fp8 cannot be trained on', () => {
    const mxfp4 = stored({ quant_method: 'mxfp4' });
    expect(weights(mxfp4)).toBe(whole);
    expect(factsOf(mxfp4).assumptions.join()).toContain('mxfp4');
    const fp8 = describeModel(stored({ quant_method: 'fp8' }));
    expect(fp8.ok ? '' : fp8.error[0]!.message).toContain('cannot train');
    const unheard = describeModel(stored({ quant_method: 'ternary' }));
    expect(unheard.ok ? '' : unheard.error[0]!.message).not.toContain('cannot train');
    expect(describeModel({ ...SMALL_LLAMA, quantization_config: null }).ok).toBe(true);
  });
});

describe('8-bit layers', () => {
  const int8 = stored({ quant_method: 'bitsandbytes', load_in_8bit: true });
  const peak = (changes: Partial<PlanValues>): number =>
    estimate(int8, { ...adapter, lossImpl: 'fused', perDeviceTrainBatchSize: 8, ...changes }).vram.allocatedPeakBytes;

  it('keep their inputs past checkpointing, but not past a reentrant one', () => {
    const open = peak({});
    const hooked = peak({ gradientCheckpointing: CHECKPOINTING });
    const reentrant = peak({ gradientCheckpointing: { ...CHECKPOINTING, useReentrant: true } });
    expect(hooked).toBeLessThan(open);
    // Inputs of the four kinds of linear layers, in 16 bits, of all layers but one.
    expect(hooked - reentrant).toBeGreaterThan(6 * 8 * 384 * (3 * 768 + 2304) * 2 * 0.9);
  });
});
