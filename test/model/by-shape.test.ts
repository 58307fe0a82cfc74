import { describe, expect, it } from 'vitest';
import { estimateMemory } from '../../src/memory/index.ts';
import { describeModel, type StoredTensor, visitOps } from '../../src/model/index.ts';
import { plan } from '../memory/plans.ts';

const CONFIG = {
  model_type: 'polaris',
  architectures: ['PolarisForCausalLM'],
  hidden_size: 320,
  intermediate_size: 896,
  num_hidden_layers: 3,
  num_attention_heads: 10,
  num_key_value_heads: 5,
  vocab_size: 5003,
};

const tensor = (name: string, ...shape: number[]): StoredTensor => ({
  name,
  dtype: 'BF16',
  shape,
  bytes: 2 * shape.reduce((product, size) => product * size, 1),
});

/** The tensors of a checkpoint: a table, `layers` times `layer`, a last norm, a head. */
const checkpoint = (layer: Readonly<Record<string, readonly number[]>>, layers = 3): StoredTensor[] => [
  tensor('model.embed_tokens.weight', 5003, 320),
  ...Array.from({ length: layers }, (_, index) =>
    Object.entries(layer).map(([name, shape]) => tensor(`model.layers.${index}.${name}`, ...shape)),
  ).flat(),
  tensor('model.norm.weight', 320),
  tensor('lm_head.weight', 5003, 320),
];

const ATTENTION = {
  'input_layernorm.weight': [320],
  'self_attn.q_proj.weight': [320, 320],
  'self_attn.k_proj.weight': [160, 320],
  'self_attn.v_proj.weight': [160, 320],
  'self_attn.o_proj.weight': [320, 320],
  'post_attention_layernorm.weight': [320],
};
const LLAMA_LIKE = {
  ...ATTENTION,
  'mlp.gate_proj.weight': [896, 320],
  'mlp.up_proj.weight': [896, 320],
  'mlp.down_proj.weight': [320, 896],
};

const facts = (config: Readonly<Record<string, unknown>>, stored?: readonly StoredTensor[]) => {
  const result = describeModel(config, stored);
  if (!result.ok) throw new Error(result.error[0]!.notes?.[0] ?? result.error[0]!.message);
  return result.value;
};
const reason = (config: Readonly<Record<string, unknown>>, stored?: readonly StoredTensor[]): string | undefined => {
  const result = describeModel(config, stored);
  return result.ok ? undefined : result.error[0]!.notes?.[0];
};
const elements = (tensors: readonly StoredTensor[]): number =>
  tensors.reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);

describe('an unknown architecture', () => {
  it('reads the usual keys as a llama, and says so', () => {
    const derived = facts(CONFIG);
    const llama = facts({ ...CONFIG, model_type: 'llama' });
    expect(derived.parameters).toBe(llama.parameters);
    expect(derived.uncertainty).toBe(0.15);
    expect(derived.assumptions.join()).toMatch(/polaris is not one snug knows.*usual keys/);
    expect(llama.uncertainty).toBeUndefined();
  });

  it('widens the interval on both sides, and nothing else', () => {
    const known = estimateMemory(plan(), facts({ ...CONFIG, model_type: 'llama' }));
    const guessed = estimateMemory(plan(), facts(CONFIG));
    if (!known.ok || !guessed.ok) throw new Error('refused');
    const [sure, unsure] = [known.value.vram, guessed.value.vram];
    expect(unsure.allocatedPeakBytes).toBe(sure.allocatedPeakBytes);
    expect(unsure.lowBytes).toBeLessThan(sure.lowBytes);
    expect(unsure.highBytes).toBeGreaterThan(sure.highBytes);
    const { allocated } = unsure.intervals!;
    expect(allocated.lowBytes).toBeLessThanOrEqual(sure.allocatedPeakBytes * 0.85);
    expect(allocated.highBytes).toBeGreaterThanOrEqual(sure.allocatedPeakBytes * 1.15);
  });

  it('counts exactly what its checkpoint holds, whatever its config leaves out', () => {
    const stored = checkpoint({
      ...LLAMA_LIKE,
      'self_attn.q_proj.bias': [320],
      'self_attn.q_norm.weight': [32],
      'self_attn.k_norm.weight': [32],
    });
    const derived = facts({ ...CONFIG, intermediate_size: undefined }, stored);
    expect(derived.parameters).toBe(elements(stored));
    expect(derived.uncertainty).toBe(0.1);
    expect(derived.description.head.tied).toBe(false);
  });

  it('keeps the names of fused projections, for targets', () => {
    const stored = checkpoint({
      'ln1.weight': [320],
      'attn.Wqkv.weight': [640, 320],
      'attn.out_proj.weight': [320, 320],
      'ln2.weight': [320],
      'ffn.gate_up_proj.weight': [1792, 320],
      'ffn.down_proj.weight': [320, 896],
    });
    const derived = facts(CONFIG, stored);
    expect(derived.parameters).toBe(elements(stored));
    const names: string[] = [];
    visitOps(derived.description.kinds[0]!, '', (op) => {
      if (op.op === 'linear') names.push(op.name);
    });
    expect(names).toEqual(['attn.Wqkv', 'attn.out_proj', 'ffn.gate_up_proj', 'ffn.down_proj']);
    const lora = {
      r: 4,
      loraAlpha: 8,
      loraDropout: 0,
      targetModules: ['Wqkv'],
      adapterDtype: 'fp32',
      modulesToSave: [],
    } as const;
    const estimate = estimateMemory(plan({ method: 'lora', lora }), derived);
    expect(estimate.ok && estimate.value.params.trainable).toBe(3 * 4 * (320 + 640));
  });

  it('takes a missing head as tied to the table', () => {
    const stored = checkpoint(LLAMA_LIKE).filter(({ name }) => name !== 'lm_head.weight');
    expect(facts(CONFIG, stored).parameters).toBe(elements(stored));
  });
});

describe('what is no plain decoder', () => {
  it.each([
    ['experts', { num_experts: 8 }, /it has experts \(num_experts\)/],
    ['a state space', { state_size: 16 }, /it has recurrent layers/],
    ['a linear recurrence', { lru_width: 512 }, /it has recurrent layers \(lru_width\)/],
    ['layers in a loop', { L_cycles: 3 }, /its layers run several times \(L_cycles\)/],
    ['a picture tower', { vision_config: { hidden_size: 64 } }, /several models/],
    ['an encoder', { type_vocab_size: 2 }, /an encoder/],
    ['another class', { architectures: ['PolarisForMaskedLM'] }, /PolarisForMaskedLM/],
    ['no class', { architectures: undefined }, /does not say its class/],
    ['a missing key', { vocab_size: undefined }, /vocab_size/],
  ])('%s', (_, changes, expected) => {
    expect(reason({ ...CONFIG, ...changes })).toMatch(expected);
  });

  it('but keys that say there are none of those are none', () => {
    expect(reason({ ...CONFIG, num_experts: 0, is_encoder_decoder: false, vision_config: null })).toBeUndefined();
  });

  it.each([
    ['stacked experts', { 'mlp.experts.weight': [8, 896, 320] }, /3 dimensions \(mlp.experts\)/],
    ['a weight of unknown use', { 'mixer.dt_proj.weight': [320, 20] }, /no plain decoder has \(mixer.dt_proj\)/],
    ['a fifth norm', { 'x_norm.weight': [320] }, /3 norms/],
  ])('in its checkpoint: %s', (_, more, expected) => {
    expect(reason(CONFIG, checkpoint({ ...LLAMA_LIKE, ...more }))).toMatch(expected);
  });

  it('layers that differ', () => {
    const stored = checkpoint(LLAMA_LIKE).filter(({ name }) => name !== 'model.layers.2.mlp.up_proj.weight');
    expect(reason(CONFIG, stored)).toMatch(/model.layers.2 is not like the first/);
  });

  it('weights that are stored packed', () => {
    const stored = checkpoint(LLAMA_LIKE).map((each) =>
      each.name.includes('up_proj') ? { ...each, dtype: 'U8' } : each,
    );
    expect(reason(CONFIG, stored)).toMatch(/is stored as U8/);
  });
});

describe('a model whose code comes with its checkpoint', () => {
  it('is described, with a wider interval and the reason', () => {
    const { assumptions, uncertainty } = facts({ model_type: 'internlm2' });
    expect(uncertainty).toBe(0.05);
    expect(assumptions.join()).toMatch(/comes with its checkpoint/);
  });

  it('tells the two Baichuans apart by their positions', () => {
    const rotary = facts({ model_type: 'baichuan', max_position_embeddings: 4096, model_max_length: 4096 });
    const alibi = facts({ model_type: 'baichuan', model_max_length: 4096 });
    expect([rotary.description.alibi, alibi.description.alibi]).toEqual([false, true]);
  });

  it('refuses the first ChatGLM', () => {
    const old = describeModel({ model_type: 'chatglm', inner_hidden_size: 16384, position_encoding_2d: true });
    expect(old.ok).toBe(false);
  });
});
