import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { describeModel, supportedModelTypes } from '../../src/model/index.ts';
import { type Counted, countReally, type RealCounts, randomFrom, varyShape } from '../support/real-counts.ts';

/** Types whose code comes with the checkpoint: transformers has no class to ask. */
const OWN_CODE = new Set([
  ...['RefinedWeb', 'RefinedWebModel', 'stablelm_epoch', 'Yi', 'xverse', 'aquila', 'orion', 'internlm', 'internlm2'],
  ...['internlm3', 'baichuan', 'chatglm', 'qwen', 'exaone', 'kimi_k2'],
  // Its class needs timm, which the test environment does not have.
  'gemma3n',
  // Described as the part of it that is trained.
  'qwen2_5_omni',
]);
const SHAPES_EACH = 3;

const models = (
  JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/model/parameter-counts.json'), 'utf8')) as Counted[]
).filter(({ config }) => !OWN_CODE.has(String(config.model_type)));

const random = randomFrom(20260);
/** Models made of several have their shapes in nested configs, named or by default: they are asked for as they are. */
const isNested = (config: Counted['config']): boolean => {
  const facts = describeModel(config);
  const tower = facts.ok && (facts.value.description.idle?.length ?? 0) > 0;
  return tower || Object.keys(config).some((key) => key.endsWith('_config') && key !== 'attn_config');
};

const shapes = [
  // First, since some class remembers what a shape that it refused made of it.
  ...models.map(({ name, config }) => ({ id: name, name, config })),
  ...models
    .filter(({ config }) => !isNested(config))
    .flatMap(({ name, config }) =>
      Array.from({ length: SHAPES_EACH }, (_, index) => ({
        id: `${name}, shape ${index + 1}`,
        name,
        config: varyShape(config, random),
      })),
    ),
];

describe('parameters against the classes of transformers, on the meta device', () => {
  let real: RealCounts;
  beforeAll(async () => {
    real = await countReally(shapes.map(({ id, config }) => ({ id, config })));
  });

  it('asks for every supported type that has a class', () => {
    const asked = new Set(models.map(({ config }) => config.model_type));
    expect(supportedModelTypes().filter((type) => !asked.has(type) && !OWN_CODE.has(type))).toEqual([]);
  });

  it.each(shapes.map((shape) => [shape.id, shape] as const))('%s', (_, { id, name, config }) => {
    const counts = real.get(id);
    const facts = describeModel(config);
    if (!counts) {
      // The class refuses this shape: so may we, but the model as published must have a count.
      expect(id).not.toBe(name);
      return;
    }
    if (!facts.ok && id !== name) {
      expect(facts.error.map(({ code }) => code)).toEqual(['unsupported-model-config']);
      return;
    }
    const published = models.find((model) => model.name === name)!.parameters;
    const auto = Object.entries(real.get(name) ?? {}).find(([, count]) => count === published)?.[0];
    expect(auto, `no class has the ${published} parameters of ${name}`).toBeDefined();
    expect(facts.ok ? facts.value.parameters : facts.error, JSON.stringify(config)).toBe(counts[auto!]);
  });
});
