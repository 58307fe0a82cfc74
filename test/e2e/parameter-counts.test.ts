import { expect, it } from 'vitest';
import { describeModel } from '../../src/model/index.ts';
import { countReally, randomFrom, varyShape } from '../support/real-counts.ts';

/** A sample of test/soak/parameters.test.ts: one shape each of families that differ in how they count. */
const small = { hidden_size: 192, intermediate_size: 512, num_hidden_layers: 3, num_attention_heads: 6 };
const families: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  llama: { ...small, num_key_value_heads: 2 },
  glm4: { ...small, num_key_value_heads: 3, head_dim: 48, pad_token_id: null },
  cohere: { ...small, num_key_value_heads: 2, use_qk_norm: true },
  apertus: { ...small, num_key_value_heads: 2 },
  bloom: { hidden_size: 192, n_layer: 3, n_head: 6 },
  gpt_bigcode: { n_embd: 192, n_layer: 3, n_head: 6, n_inner: 640 },
};

it('counts parameters as the classes of transformers do', { timeout: 180_000 }, async () => {
  const random = randomFrom(7);
  const cases = Object.entries(families).map(([type, config]) => ({
    id: type,
    config: varyShape({ model_type: type, ...config }, random),
  }));
  const real = await countReally(cases);
  for (const { id, config } of cases) {
    const facts = describeModel(config);
    expect(facts.ok && facts.value.parameters, id).toBe(real.get(id)?.AutoModelForCausalLM);
  }
});
