import { expect, it } from 'vitest';
import { estimateMemory } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const MHA = { ...SMALL_LLAMA, num_key_value_heads: SMALL_LLAMA.num_attention_heads };
const { hidden_size: hidden, num_hidden_layers: layers, intermediate_size: inner, vocab_size: vocab } = SMALL_LLAMA;
const tokens = 3 * 384;

const lora = (targetModules: readonly string[], loraDropout = 0): Partial<PlanValues> => ({
  method: 'lora',
  lora: { ...LORA, adapterDtype: 'bf16', targetModules, loraDropout },
  lossImpl: 'chunked_logits',
});

const terms = (changes: Partial<PlanValues>, config: Readonly<Record<string, unknown>> = MHA) => {
  const result = estimateMemory(plan(changes), factsOf(config), { computeCapability: { major: 8, minor: 0 } });
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value.vram.terms;
};

const QLORA = {
  method: 'qlora',
  quantization: { bits: 4, quantType: 'nf4', doubleQuant: false, computeDtype: 'bf16', upcastRestToFp32: false },
} as const;

/** Widths of the hidden size that a token and layer keep more under LitGPT. */
function moreKept(changes: Partial<PlanValues>, config: Readonly<Record<string, unknown>> = MHA): number {
  const own = terms({ ...changes, ownModules: 'litgpt' }, config).activations;
  return (own - terms(changes, config).activations) / (2 * tokens * hidden * layers);
}

it.each([
  ['all three of one product stay while the value does', ['q_proj', 'k_proj', 'v_proj'], 0, 2],
  ['an update without the key is put into zeros and kept', ['q_proj', 'v_proj'], 0, 4],
  ['the input is dropped out once, not for each', ['q_proj', 'v_proj'], 0.05, 2.5],
])('%s', (_, targets, dropout, widths) => {
  // The first layer's input needs no gradient, and ranks are small beside the hidden size.
  expect(Math.abs(moreKept(lora(targets, dropout)) - widths)).toBeLessThan(0.3);
});

it('copies grouped queries out of the product, so that it goes', () => {
  expect(Math.abs(moreKept(lora(['q_proj', 'k_proj', 'v_proj']), SMALL_LLAMA))).toBeLessThan(0.3);
});

it('holds fp32 logits of the last batch while the next one runs, and inputs of 4-bit layers of an older bitsandbytes', () => {
  const held = (changes: Partial<PlanValues>): number => {
    const own: Partial<PlanValues> = { ...lora(['q_proj', 'v_proj']), ...changes, ownModules: 'litgpt' };
    return terms({ ...own, holdsLastLoss: true }).activations - terms(own).activations;
  };
  const logits = 4 * tokens * vocab;
  expect(Math.abs(held({}) / logits - 1)).toBeLessThan(0.01);
  const versions = { torch: '2.3', transformers: '4.40', peft: '0.10', trl: '0.8' };
  const inputs = 2 * tokens * layers * (3 * hidden + inner);
  const old = held({ ...QLORA, versions: { ...versions, bitsandbytes: '0.42.0' } });
  expect(Math.abs(old / (logits + inputs) - 1)).toBeLessThan(0.01);
  expect(Math.abs(held({ ...QLORA, versions: { ...versions, bitsandbytes: '0.45.0' } }) / logits - 1)).toBeLessThan(
    0.01,
  );
});

it('quantises the head, and has one even where the checkpoint ties it', () => {
  const tied = { ...MHA, tie_word_embeddings: true };
  const changes = lora(['q_proj', 'v_proj']);
  const table = 2 * vocab * hidden;
  const more = (values: Partial<PlanValues>, config: Readonly<Record<string, unknown>>): number =>
    (terms({ ...values, ownModules: 'litgpt' }, config).weights - terms(values, config).weights) / table;
  expect(more(changes, tied)).toBeCloseTo(1, 2);
  expect(more(changes, MHA)).toBeCloseTo(0, 2);
  // Half a byte a weight and a 64th of a float.
  expect(more({ ...changes, ...QLORA }, tied)).toBeCloseTo(0.28, 1);
});

it('a loop of its own still names the logits while layers run backward, which a Trainer has let go of', () => {
  const versions = { torch: '2.2', transformers: '4.38', peft: '0.9', trl: '0.7' };
  const more = (changes: Partial<PlanValues>): number => {
    const own = { ...changes, versions, gradientCheckpointing: CHECKPOINTING };
    const [held, plain] = [terms({ ...own, holdsLastLoss: true }), terms(own)];
    return (held.logits + held.activations - plain.logits - plain.activations) / (4 * tokens * vocab);
  };
  // The last step's in fp32 lie beside this one's at the loss; fused losses have none.
  expect(more({ ...lora(['q_proj']), lossImpl: 'full' })).toBeCloseTo(1, 1);
  expect(more({ ...lora(['q_proj']), lossImpl: 'fused' })).toBe(0);
});

it.each(['fused', 'chunked'] as const)('a quantised head has no weight for a %s loss', (lossImpl) => {
  const asked = plan({ ...lora(['q_proj']), ...QLORA, lossImpl });
  const refused = estimateMemory({ ...asked, ownModules: 'litgpt' }, factsOf(MHA));
  expect(refused.ok ? 'estimated' : refused.error[0]!.code).toBe('unsupported-loss');
  expect(estimateMemory(asked, factsOf(MHA)).ok).toBe(true);
});
