import { describe, expect, it } from 'vitest';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const peakOf = (changes: Partial<PlanValues>, device = {}): number => {
  const estimate = estimateMemory(plan(changes), factsOf(), device);
  if (!estimate.ok) throw new Error(estimate.error[0]!.message);
  return estimate.value.vram.allocatedPeakBytes;
};
const withTransformers = (transformers: string): Partial<PlanValues> => ({
  gradientCheckpointing: CHECKPOINTING,
  optim: 'sgd',
  method: 'lora',
  lora: LORA,
  versions: { torch: '2.4', transformers, peft: '0.13', trl: '0.11' },
});
/** One fp32 tensor of all logits of the plan in plans.ts. */
const LOGITS = 3 * 384 * 30011 * 4;
const near = (value: number, wanted: number): void => {
  expect(value / wanted).toBeGreaterThan(0.98);
  expect(value / wanted).toBeLessThan(1.02);
};

describe('what versions of transformers do to the logits', () => {
  it('before 4.49 the loss copies them to shift them', () => {
    const more = peakOf(withTransformers('4.48.3')) - peakOf(withTransformers('4.49.0'));
    // Half of it: without the copy the backward pass of the loss has the peak.
    expect(more).toBeGreaterThan(0.48 * LOGITS);
    expect(more).toBeLessThan(0.55 * LOGITS);
  });
  it('before 4.46 the 16-bit ones end when the fp32 ones take their name', () => {
    near(peakOf(withTransformers('4.46.0')) - peakOf(withTransformers('4.45.2')), LOGITS / 2);
  });
  it('4.49 and 5 are alike', () => {
    expect(peakOf(withTransformers('4.49.0'))).toBe(peakOf(withTransformers('5.17.0')));
  });
});

describe('fused kernels', () => {
  const base: Partial<PlanValues> = { optim: 'sgd', maxLength: 512 };
  it('a fused loss on whole logits writes their gradient in place', () => {
    near(
      peakOf(withTransformers('4.45.2')) - peakOf({ ...withTransformers('4.45.2'), lossImpl: 'fused_logits' }),
      LOGITS,
    );
  });
  it('logits in chunks keep their log-probabilities, and wide copies of a chunk alone', () => {
    const base = withTransformers('5.17');
    const whole = peakOf(base);
    const chunks = peakOf({ ...base, lossImpl: 'chunked_logits' });
    // Whole: 16-bit logits, fp32 logits, log-probabilities, and a gradient. Chunks: 16-bit logits, log-probabilities, an eighth.
    expect(whole - chunks).toBeGreaterThan(1.2 * LOGITS);
    expect(chunks).toBeGreaterThan(peakOf({ ...base, lossImpl: 'chunked' }) + 0.5 * LOGITS);
  });
  it('compiled chunks keep the 16-bit logits alone', () => {
    const base = { ...withTransformers('5.17'), lossImpl: 'chunked_logits' } as const;
    const saved =
      peakOf({ ...base, fusedKernels: ['norm', 'rotary', 'gate'] }) - peakOf({ ...base, torchCompile: true });
    // No log-probabilities, and no wide copy of a part or of its gradient.
    expect(saved).toBeGreaterThan(LOGITS);
    expect(saved).toBeLessThan(1.4 * LOGITS);
  });
  it('a compiled model keeps what kernels for norms, rotary embeddings and gates keep', () => {
    const compiled = peakOf({ ...base, torchCompile: true });
    expect(compiled).toBe(peakOf({ ...base, fusedKernels: ['norm', 'rotary', 'gate'] }));
    expect(compiled).toBeLessThan(peakOf(base));
    expect(peakOf({ ...base, torchCompile: false })).toBe(peakOf(base));
  });
  it('norms and gates lower the peak', () => {
    const peaks = [[], ['norm'], ['norm', 'rotary'], ['norm', 'rotary', 'gate']].map((fusedKernels) =>
      peakOf({ ...base, lossImpl: 'fused', fusedKernels: fusedKernels as PlanValues['fusedKernels'] & object }),
    );
    for (let i = 1; i < peaks.length; i += 1) expect(peaks[i]).toBeLessThanOrEqual(peaks[i - 1]!);
    expect(peaks[1]).toBeLessThan(peaks[0]!);
    expect(peaks[3]).toBeLessThan(peaks[2]!);
  });
  it('not said: norms and rotary embeddings with a fused loss, nothing with a full one', () => {
    expect(peakOf({ ...base, lossImpl: 'fused' })).toBe(
      peakOf({ ...base, lossImpl: 'fused', fusedKernels: ['norm', 'rotary'] }),
    );
    expect(peakOf(base)).toBe(peakOf({ ...base, fusedKernels: [] }));
  });
});

describe('dropout masks', () => {
  const dropout: Partial<PlanValues> = { method: 'lora', lora: { ...LORA, loraDropout: 0.1 }, optim: 'sgd' };
  it('are bytes on a CUDA card and wider where the card is not known', () => {
    const cuda = { computeCapability: { major: 8, minor: 0 } };
    expect(peakOf(dropout, cuda)).toBeLessThan(peakOf(dropout));
    expect(peakOf({ ...dropout, lora: LORA }, cuda)).toBe(peakOf({ ...dropout, lora: LORA }));
  });
});

describe('FSDP 1', () => {
  const sharded = (changes: Partial<PlanValues>): Partial<PlanValues> => ({
    distributed: { nodes: 1, processesPerNode: 4, strategy: 'fsdp1', offload: [] },
    gradientCheckpointing: { ...CHECKPOINTING, useReentrant: true },
    lossImpl: 'fused',
    optim: 'sgd',
    method: 'lora',
    lora: LORA,
    ...changes,
  });
  /** One layer's input. */
  const BOUNDARY = 3 * 384 * 768 * 2;
  it('keeps inputs of frozen layers and their gradients until the backward pass ends', () => {
    const held = peakOf(sharded({}));
    const fsdp2 = peakOf(sharded({ distributed: { nodes: 1, processesPerNode: 4, strategy: 'fsdp2', offload: [] } }));
    // Six layers have run backward when the last does, nothing of theirs is gone; only its own layer is gathered any more.
    expect(held - fsdp2).toBeGreaterThan(5 * BOUNDARY);
    expect(held - fsdp2).toBeLessThan(6 * BOUNDARY);
  });
  it('keeps the gradient of a trained head whole until the embedding has its own', () => {
    const grown = factsOf({ ...SMALL_LLAMA, intermediate_size: 23040, vocab_size: 90011, tie_word_embeddings: false });
    const peak = (strategy: 'fsdp1' | 'zero3'): MemoryEstimate['vram'] => {
      const distributed = { nodes: 1, processesPerNode: 8, strategy, offload: [] };
      const changes = { method: 'full', lora: null, maxLength: 2048, distributed } as const;
      const estimate = estimateMemory(plan(sharded(changes)), grown);
      if (!estimate.ok) throw new Error(estimate.error[0]!.message);
      return estimate.value.vram;
    };
    const head = 90011 * 768 * 2;
    expect(peak('fsdp1').peakPhase).toBe('backward');
    expect(peak('fsdp1').terms.gradients).toBeGreaterThanOrEqual(head);
    expect(peak('zero3').terms.gradients).toBeLessThan(head);
  });
  it('does not with checkpoints that are not reentrant, nor when all weights are trained', () => {
    const fsdp2 = { nodes: 1, processesPerNode: 4, strategy: 'fsdp2', offload: [] } as const;
    for (const changes of [{ gradientCheckpointing: CHECKPOINTING }, { method: 'full', lora: null }] as const) {
      expect(peakOf(sharded(changes))).toBe(peakOf(sharded({ ...changes, distributed: fsdp2 })));
    }
  });
});

describe('4-bit layers', () => {
  const qlora = (bitsandbytes?: string): Partial<PlanValues> => ({
    method: 'qlora',
    lora: { ...LORA, targetModules: ['q_proj'] },
    quantization: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false },
    versions: {
      torch: '2.4',
      transformers: '5.0',
      peft: '0.13',
      trl: '0.11',
      ...(bitsandbytes ? { bitsandbytes } : {}),
    },
  });
  it('kept their input up to bitsandbytes 0.43.0', () => {
    expect(peakOf(qlora('0.42.0'))).toBeGreaterThan(peakOf(qlora('0.43.3')));
    expect(peakOf(qlora('0.43.1'))).toBe(peakOf(qlora()));
  });
});

describe('an optimizer in the backward pass', () => {
  it('leaves no gradients behind, and its temporaries are those of one parameter', () => {
    const usual = peakOf({ optim: 'adamw_torch', maxLength: 64 });
    const early = peakOf({ optim: 'adamw_torch', maxLength: 64, optimizerInBackward: true });
    const weights = 2 * factsOf().parameters;
    expect(usual - early).toBeGreaterThan(1.2 * weights);
    expect(usual - early).toBeLessThan(2 * weights);
  });
});
