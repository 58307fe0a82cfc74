import { describe, expect, it } from 'vitest';
import { describeModel } from '../../src/model/index.ts';
import { findKnownModel, knownModels } from '../../src/model/known-models.ts';

describe('the table of known models', () => {
  it('is worth carrying, and each id stands in it once', () => {
    expect(knownModels.length).toBeGreaterThan(300);
    const ids = knownModels.map(({ id }) => id.toLowerCase());
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('gives every model a family and a size that agrees with its name', () => {
    const odd = knownModels.filter(({ id, config, parameters }) => {
      // `8x7B` counts experts, `30B-A3B` names the active part as well, `7b` and `135M` are what they say.
      const [, experts, size, unit] = /(?:^|[-_/])(?:(\d+)x)?(\d+(?:[.b_]\d+)?)(m|b)(?=$|[-_])/i.exec(id) ?? [];
      if (typeof config.model_type !== 'string' || !Array.isArray(config.architectures)) return true;
      if (size === undefined) return false;
      const named =
        Number(size.replace(/[b_]/, '.')) * (unit!.toLowerCase() === 'm' ? 1e6 : 1e9) * Number(experts ?? 1);
      return parameters < named * 0.78 || parameters > named * 1.32;
    });
    // These round generously (1B), or name the active part first (OLMoE).
    expect(odd.map(({ id, parameters }) => `${id} ${(parameters / 1e9).toFixed(2)}`)).toMatchInlineSnapshot(`
      [
        "tiiuae/Falcon3-1B-Instruct 1.67",
        "tiiuae/Falcon3-1B-Base 1.67",
        "allenai/OLMo-2-0425-1B 1.48",
        "allenai/OLMoE-1B-7B-0924 6.92",
        "allenai/OLMoE-1B-7B-0924-SFT 6.92",
        "allenai/OLMoE-1B-7B-0924-Instruct 6.92",
      ]
    `);
  });

  it('counts as many parameters as were published, wherever the architecture can be described', () => {
    const counts = knownModels.map(({ id, config, parameters }) => ({ id, parameters, facts: describeModel(config) }));
    const described = counts.filter(({ facts }) => facts.ok);
    expect(described.length).toBeGreaterThan(100);
    const wrong = described.filter(({ facts, parameters }) => facts.ok && facts.value.parameters !== parameters);
    expect(wrong.map(({ id, parameters, facts }) => [id, parameters, facts.ok && facts.value.parameters])).toEqual([]);
  });

  it('finds ids in any capitalisation and nothing that merely resembles one', () => {
    expect(findKnownModel('META-llama/llama-3.2-1b')?.id).toBe('meta-llama/Llama-3.2-1B');
    expect(findKnownModel('meta-llama/Llama-3.2-1B-Instruct')?.parameters).toBe(1_235_814_400);
    for (const id of [
      'meta-llama/Llama-3.2-1',
      'Llama-3.2-1B',
      'someone/Llama-3.2-1B',
      '',
      'constructor',
      'toString',
    ]) {
      expect(findKnownModel(id), id).toBeUndefined();
    }
  });

  it('knows the copies on ModelScope by the name they keep', () => {
    expect(findKnownModel('LLM-Research/Meta-Llama-3-8B-Instruct')).toMatchObject({
      id: 'LLM-Research/Meta-Llama-3-8B-Instruct',
      parameters: 8_030_261_248,
    });
    expect(findKnownModel('AI-ModelScope/Mistral-7B-v0.1')?.config.model_type).toBe('mistral');
    expect(findKnownModel('LLM-Research/Meta-Llama-3-9B')).toBeUndefined();
    expect(findKnownModel('someone/Meta-Llama-3-8B-Instruct')).toBeUndefined();
  });

  it('starts an entry from another where only a detail differs', () => {
    const [early, late] = ['mistralai/Mistral-7B-v0.1', 'mistralai/Mistral-7B-Instruct-v0.2'].map(
      (id) => findKnownModel(id)!,
    );
    expect(late!.config).toEqual({ ...early!.config, sliding_window: null });
    expect(late!.parameters).toBe(early!.parameters);
  });

  it('knows the 4-bit copies by the model they are made from', () => {
    const plain = findKnownModel('unsloth/Qwen2.5-7B-Instruct')!;
    for (const id of ['unsloth/Qwen2.5-7B-Instruct-bnb-4bit', 'unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit']) {
      const { quantization_config: quantization, ...config } = findKnownModel(id)!.config;
      expect(config).toEqual(plain.config);
      expect(quantization).toMatchObject({ load_in_4bit: true, bnb_4bit_quant_type: 'nf4' });
    }
    expect(findKnownModel('unsloth/nothing-bnb-4bit')).toBeUndefined();
    expect(findKnownModel('Qwen/Qwen2.5-7B-Instruct-bnb-4bit')).toBeUndefined();
  });
});
