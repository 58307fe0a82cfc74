import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeModel, supportedModelTypes } from '../../src/model/index.ts';

interface Counted {
  readonly name: string;
  readonly parameters: number;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Counted from the model classes of transformers 5.17 on the meta device; keys left out have that version's defaults. */
const counted = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/model/parameter-counts.json'), 'utf8'),
) as Counted[];

const facts = (config: Readonly<Record<string, unknown>>) => {
  const result = describeModel(config);
  if (!result.ok) throw new Error(result.error.map((problem) => problem.message).join('; '));
  return result.value;
};
const problems = (config: Readonly<Record<string, unknown>>) => {
  const result = describeModel(config);
  return result.ok ? [] : result.error;
};

describe('parameters from config.json alone', () => {
  it.each(counted.map((model) => [model.name, model] as const))('%s', (_, { config, parameters }) => {
    expect(facts(config).parameters).toBe(parameters);
  });

  it('has a counted model for every supported type', () => {
    const types = new Set(counted.map(({ config }) => config.model_type));
    expect(supportedModelTypes().filter((type) => !types.has(type))).toEqual([]);
  });

  it('counts a tied head once', () => {
    const untied = { model_type: 'llama', hidden_size: 96, vocab_size: 700, tie_word_embeddings: false };
    const tied = { ...untied, tie_word_embeddings: true };
    expect(facts(untied).parameters - facts(tied).parameters).toBe(96 * 700);
  });

  it('takes null key heads as one a query head, and an absent key as the family does', () => {
    const base = { model_type: 'mistral', hidden_size: 512, num_attention_heads: 16, num_hidden_layers: 1 };
    const absent = facts(base).parameters;
    const none = facts({ ...base, num_key_value_heads: null }).parameters;
    expect(none - absent).toBe(2 * 512 * (16 - 8) * 32);
  });
});

describe('facts beside the layers', () => {
  it('reads the checkpoint dtype by both its keys', () => {
    expect(facts({ model_type: 'llama', torch_dtype: 'bfloat16' }).checkpointDtype).toBe('bf16');
    expect(facts({ model_type: 'llama', dtype: 'float16' }).checkpointDtype).toBe('fp16');
    expect(facts({ model_type: 'llama' }).checkpointDtype).toBeUndefined();
  });

  it('reads the positions of models that call them otherwise', () => {
    expect(facts({ model_type: 'gpt2', n_positions: 640 }).maxPositionEmbeddings).toBe(640);
  });

  it('lists dense layers of a sparse model as a kind of their own', () => {
    const { description } = facts({
      model_type: 'qwen3_moe',
      num_hidden_layers: 5,
      mlp_only_layers: [0],
      decoder_sparse_step: 2,
    });
    expect(description.layers).toEqual([1, 0, 1, 0, 1]);
  });
});

describe('what cannot be described', () => {
  it('names an unknown type and never guesses', () => {
    expect(problems({ model_type: 'mamba3', hidden_size: 64 })).toMatchObject([
      { code: 'unsupported-architecture', message: 'model type mamba3 is not one snug can estimate' },
    ]);
  });

  it('offers the near name', () => {
    expect(problems({ model_type: 'qwen_vl_3' })[0]?.help).toBeUndefined();
    expect(problems({ model_type: 'qwen33' })[0]?.help).toBe('did you mean qwen3');
  });

  it('wants a model_type', () => {
    expect(problems({ hidden_size: 64 })).toMatchObject([{ code: 'bad-model-config' }]);
  });

  it('names every wrong key at once', () => {
    const found = problems({
      model_type: 'llama',
      hidden_size: '4096',
      num_hidden_layers: 0,
      hidden_act: 'swishy',
      mlp_bias: 'yes',
    });
    expect(found.map(({ code, message }) => [code, message.split(' ')[0]])).toEqual([
      ['bad-model-config', 'hidden_size'],
      ['bad-model-config', 'num_hidden_layers'],
      ['bad-model-config', 'hidden_act'],
      ['bad-model-config', 'mlp_bias'],
    ]);
  });

  it('refuses heads that do not divide', () => {
    expect(problems({ model_type: 'llama', num_attention_heads: 32, num_key_value_heads: 5 })).toMatchObject([
      { code: 'bad-model-config', message: expect.stringContaining('num_key_value_heads (5)') },
    ]);
    expect(problems({ model_type: 'llama', num_attention_heads: 32, num_key_value_heads: 4 })).toEqual([]);
  });

  it('refuses variants it has no ops for', () => {
    expect(problems({ model_type: 'gptj', rotary_dim: null })).toMatchObject([{ code: 'unsupported-model-config' }]);
    expect(problems({ model_type: 'gptj', rotary_dim: 32 })).toEqual([]);
  });

  it('refuses a checkpoint stored in another quantisation, but not one for bitsandbytes', () => {
    const base = { model_type: 'llama' };
    expect(problems({ ...base, quantization_config: { quant_method: 'aqlm' } })).toMatchObject([
      { code: 'unsupported-model-config' },
    ]);
    expect(problems({ ...base, quantization_config: { quant_method: 'bitsandbytes' } })).toEqual([]);
  });
});

describe('sizes that are no sizes', () => {
  const whyNot = (config: Readonly<Record<string, unknown>>): string => {
    const described = describeModel(config);
    return described.ok ? 'described' : `${described.error[0]!.code}: ${described.error[0]!.message}`;
  };

  it.each([
    ['a billion layers', { model_type: 'llama', num_hidden_layers: 1e9 }, /bad-model-config: .*num_hidden_layers/],
    ['a billion decoder layers', { model_type: 'plbart', decoder_layers: 1e9 }, /bad-model-config: .*decoder_layers/],
    ['a division by zero', { model_type: 'internvl', downsample_ratio: 0 }, /bad-model-config: .*no count/],
  ])('%s: are refused', (_, config, expected) => expect(whyNot(config)).toMatch(expected));

  it('many layers are still described', () => {
    expect(whyNot({ model_type: 'llama', num_hidden_layers: 900 })).toBe('described');
  });
});
