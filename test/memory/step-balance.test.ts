import { describe, expect, it } from 'vitest';
import { owner } from '../../src/memory/tape/tape.ts';
import { walkRun } from '../../src/memory/walk-run.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const facts = factsOf();
const PASSING = (['activations', 'logits', 'temporaryBuffers'] as const).map(owner);
const REENTRANT = { ...CHECKPOINTING, useReentrant: true };
const OFFLOADED = { ...CHECKPOINTING, offload: true };
const GATES = { fusedKernels: ['norm', 'rotary', 'gate'] } as const;

/** Bytes that the passes of a step leave behind, and its phases. */
function walked(changes: Partial<PlanValues>) {
  const run = walkRun(plan(changes), facts, {}, {});
  if (!run.ok) throw new Error(run.error[0]!.message);
  const { timeline } = run.value.step;
  return { left: PASSING.map((term) => timeline.now[term]), phases: timeline.phases() };
}

describe('what a step has made', () => {
  it.each<[string, Partial<PlanValues>]>([
    ['plain', {}],
    ['checkpointed', { gradientCheckpointing: CHECKPOINTING }],
    ['checkpointed, reentrant', { gradientCheckpointing: REENTRANT }],
    ['offloaded', { gradientCheckpointing: OFFLOADED }],
    ['fused gates', GATES],
    ['fused gates, checkpointed', { ...GATES, gradientCheckpointing: CHECKPOINTING }],
    ['fused gates, checkpointed, reentrant', { ...GATES, gradientCheckpointing: REENTRANT }],
    ['compiled, checkpointed', { torchCompile: true, gradientCheckpointing: CHECKPOINTING }],
    ['LoRA, fused gates, checkpointed', { ...GATES, method: 'lora', lora: LORA, gradientCheckpointing: CHECKPOINTING }],
    ['eager, checkpointed', { attnImplementation: 'eager', gradientCheckpointing: CHECKPOINTING }],
    ['logits in blocks, evaluated', { lossImpl: 'chunked', eval: true }],
    ['logits in parts, evaluated', { lossImpl: 'chunked_logits', eval: true }],
    ['autocast on fp32', { dtype: 'fp32', mixedPrecision: 'bf16', gradientCheckpointing: CHECKPOINTING }],
  ])('ends with it, once: %s', (_, changes) => {
    const { left, phases } = walked(changes);
    expect(left).toEqual([0, 0, 0]);
    for (const { bytes } of phases) expect(bytes).toBeGreaterThan(0);
  });
});
