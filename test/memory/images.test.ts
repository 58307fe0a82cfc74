import { describe, expect, it } from 'vitest';
import { estimateMemory, type MemoryEstimate } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { factsOf, LORA, plan } from './plans.ts';

const TEXT = {
  model_type: 'llama',
  hidden_size: 768,
  intermediate_size: 2304,
  num_hidden_layers: 7,
  num_attention_heads: 12,
  vocab_size: 30011,
};
const VISION = {
  model_type: 'clip_vision_model',
  hidden_size: 320,
  num_attention_heads: 5,
  patch_size: 14,
  image_size: 280,
};
const alone = factsOf(TEXT);
const seeing = factsOf({ model_type: 'llava', text_config: TEXT, vision_config: VISION });
const estimate = (of: typeof alone, changes: Partial<PlanValues> = {}): MemoryEstimate => {
  const result = estimateMemory(plan(changes), of);
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value;
};

describe('a vision-language model on rows of text', () => {
  it('holds its tower and projector, without gradients or optimizer states for them', () => {
    const [text, vision] = [estimate(alone), estimate(seeing)];
    const towerBytes = (seeing.parameters - alone.parameters) * 2;
    expect(towerBytes).toBeGreaterThan(1e7);
    expect(vision.vram.terms.weights - text.vram.terms.weights).toBeGreaterThanOrEqual(towerBytes);
    expect(vision.vram.terms.weights - text.vram.terms.weights).toBeLessThan(towerBytes * 1.02);
    expect(vision.vram.terms.optimizerStates).toBe(text.vram.terms.optimizerStates);
    expect(vision.params.trainable).toBe(seeing.parameters);
  });

  it('says what an image adds, and leaves room for it at the upper end', () => {
    const [text, vision] = [estimate(alone), estimate(seeing)];
    const room = ({ vram }: MemoryEstimate): number => vram.highBytes - vram.devicePeakBytes;
    expect(room(vision)).toBeGreaterThan(room(text) + (seeing.parameters - alone.parameters) * 10);
    expect(vision.assumptions.join('; ')).toContain('an image of 280 × 280 pixels takes 400 tokens of its row');
    expect(text.assumptions.join('; ')).not.toContain('image');
  });

  it('gives adapters to the tower too when all linear layers are asked for', () => {
    const trainable = (targetModules: 'all-linear' | readonly string[]): number =>
      estimate(seeing, { method: 'lora', lora: { ...LORA, targetModules } }).params.trainable;
    // fc1 stands in the tower alone, and its name in no layer of the language model.
    expect(trainable(['fc1'])).toBe(12 * 12 * (320 + 3072));
    expect(trainable('all-linear')).toBeGreaterThan(trainable(['q_proj', 'fc1']));
  });
});
