import { describe, expect, it } from 'vitest';
import { planParameters } from '../../src/memory/parameters.ts';
import { walkTower } from '../../src/memory/tower.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const TEXT = {
  hidden_size: 256,
  intermediate_size: 640,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  vocab_size: 3000,
};
const SIZES = { hidden_size: 256, intermediate_size: 640, num_attention_heads: 4 };
const TOWER = { ...SIZES, num_hidden_layers: 4, patch_size: 14 };

/** Towers of the classes of transformers 5.17 with one image, bf16: bytes alive after the forward pass that began without any. */
const traced = [
  {
    vectors: 577,
    keptBytes: 18_978_304,
    config: {
      model_type: 'llava',
      text_config: TEXT,
      vision_config: { model_type: 'clip_vision_model', ...TOWER, image_size: 336 },
    },
  },
  {
    vectors: 1024,
    keptBytes: 29_477_888,
    config: { model_type: 'gemma3', text_config: TEXT, vision_config: { ...TOWER, image_size: 448 } },
  },
  {
    vectors: 1025,
    keptBytes: 32_123_392,
    config: { model_type: 'internvl', text_config: TEXT, vision_config: { ...TOWER, image_size: [448, 448] } },
  },
] as const;

function cost(config: Readonly<Record<string, unknown>>, vectors: number, changes: Partial<PlanValues> = {}) {
  const values = plan(changes);
  const { description } = factsOf(config);
  const modules = description.idle!.find(({ runs }) => runs)!;
  return walkTower(modules, vectors, values, planParameters(description, values));
}

describe('the layers of a vision tower on an image', () => {
  it.each(traced.map((each) => [each.config.model_type, each] as const))('%s', (_, { config, vectors, keptBytes }) => {
    // What embeds the patches, and what pools the result, is not among the layers.
    const ratio = cost(config, vectors).keptBytes / keptBytes;
    expect(ratio).toBeGreaterThan(0.9);
    expect(ratio).toBeLessThan(1);
  });

  it('keep nothing where the tower is frozen, and their inputs alone between checkpoints', () => {
    const [{ config, vectors }] = traced;
    const frozen = cost(config, vectors, { method: 'lora', lora: { ...LORA, targetModules: ['q_projection'] } });
    expect(frozen.keptBytes).toBe(0);
    expect(frozen.transientBytes).toBeGreaterThan(vectors * 640 * 2);
    const checkpointed = cost(config, vectors, { gradientCheckpointing: CHECKPOINTING });
    expect(checkpointed.keptBytes).toBe(4 * vectors * 256 * 2);
  });

  it('keep twice as much of twice as many vectors', () => {
    const { config } = traced[1];
    expect(cost(config, 2048).keptBytes / cost(config, 1024).keptBytes).toBeCloseTo(2, 2);
  });
});
