import { describe, expect, it } from 'vitest';
import { estimateMemory } from '../../src/memory/index.ts';
import { factsOf, LORA, plan } from './plans.ts';

const SCAN = {
  model_type: 'mamba2',
  hidden_size: 160,
  num_heads: 10,
  head_dim: 32,
  n_groups: 2,
  state_size: 24,
  num_hidden_layers: 2,
  vocab_size: 3001,
};
const lora = (targetModules: readonly string[]) =>
  estimateMemory(
    plan({ method: 'lora', attnImplementation: 'eager', lora: { ...LORA, targetModules } }),
    factsOf(SCAN),
  );

describe('state-space models', () => {
  it('refuses LoRA where PEFT does', () => {
    const refused = lora(['in_proj', 'out_proj']);
    expect(refused.ok ? [] : refused.error.map(({ code }) => code)).toEqual(['bad-targets']);
    expect(lora(['in_proj']).ok).toBe(true);
  });

  it('says that faster kernels would need less', () => {
    const estimate = lora(['in_proj']);
    expect(estimate.ok && estimate.value.assumptions.some((text) => text.includes('mamba_ssm'))).toBe(true);
  });
});

describe('sparse models', () => {
  const config = {
    model_type: 'deepseek_v3',
    hidden_size: 128,
    num_hidden_layers: 3,
    vocab_size: 901,
    n_routed_experts: 16,
  };

  it('takes the first layers as dense', () => {
    const dense = factsOf({ ...config, first_k_dense_replace: 2 }).description.layers;
    expect(dense).toEqual([1, 1, 0]);
  });

  it('has one router weight for every additional expert and hidden feature', () => {
    const [few, many] = [16, 32].map((count) =>
      factsOf({ ...config, first_k_dense_replace: 2, n_routed_experts: count }),
    );
    expect(many!.parameters - few!.parameters).toBe(16 * (128 + 3 * 128 * 2048));
  });
});
