import { describe, expect, it } from 'vitest';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { factsOf, plan } from './plans.ts';

const HYBRID = {
  model_type: 'granitemoehybrid',
  hidden_size: 384,
  intermediate_size: 320,
  shared_intermediate_size: 320,
  num_hidden_layers: 4,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  num_local_experts: 0,
  num_experts_per_tok: 0,
  mamba_n_heads: 12,
  mamba_d_state: 64,
  vocab_size: 2011,
  layer_types: ['mamba', 'mamba', 'attention', 'mamba'],
};
const LINEAR = {
  model_type: 'qwen3_5_text',
  hidden_size: 320,
  intermediate_size: 704,
  num_hidden_layers: 4,
  num_attention_heads: 5,
  num_key_value_heads: 5,
  vocab_size: 2011,
};

const { versions } = plan();
const estimate = (
  config: Readonly<Record<string, unknown>>,
  packages: Partial<PlanValues['versions']>,
): MemoryEstimate => {
  const result = estimateMemory(plan({ maxLength: 768, versions: { ...versions, ...packages } }), factsOf(config));
  if (!result.ok) throw new Error(result.error.map(({ message }) => message).join('; '));
  return result.value;
};
const kernelNote = ({ assumptions }: MemoryEstimate): string | undefined =>
  assumptions.find((text) => /plain PyTorch|kernels of/.test(text));

describe('kernels of packages', () => {
  it('a scan in chunks needs a fraction where mamba_ssm is there, and the estimate says which it takes', () => {
    const plain = estimate(HYBRID, {});
    const packaged = estimate(HYBRID, { mambaSsm: '2.2.6', causalConv1d: '1.5.2' });
    expect(packaged.vram.terms.activations).toBeLessThan(plain.vram.terms.activations * 0.6);
    expect(packaged.params).toEqual(plain.params);
    expect(kernelNote(plain)).toContain('versions: { mamba_ssm: …, causal_conv1d: … }');
    expect(kernelNote(packaged)).toContain('kernels of mamba_ssm 2.2.6');
  });

  it('the delta rule keeps less where fla is there', () => {
    const plain = estimate(LINEAR, {});
    const packaged = estimate(LINEAR, { fla: '0.4.1' });
    expect(packaged.vram.allocatedPeakBytes).toBeLessThan(plain.vram.allocatedPeakBytes);
    expect(kernelNote(packaged)).toContain('kernels of fla 0.4.1');
  });

  it('a package that the model has no use for changes nothing', () => {
    const plain = estimate(LINEAR, {});
    const other = estimate(LINEAR, { mambaSsm: '2.2.6' });
    expect(other.vram).toEqual(plain.vram);
    expect(kernelNote(other)).toBe(kernelNote(plain));
  });

  it('a convolution keeps its input once', () => {
    const plain = estimate(LINEAR, { fla: '0.4.1' });
    const packaged = estimate(LINEAR, { fla: '0.4.1', causalConv1d: '1.5.2' });
    expect(packaged.vram.allocatedPeakBytes).toBeLessThan(plain.vram.allocatedPeakBytes);
  });
});
