import { describe, expect, it } from 'vitest';
import { isSaved } from '../../src/memory/adapters/index.ts';

describe('modules_to_save', () => {
  it('takes every module whose path ends with a name, whatever stands before it in the last part', () => {
    expect(isSaved('model.layers.3.input_layernorm', ['norm'])).toBe(true);
    expect(isSaved('model.norm', ['norm'])).toBe(true);
    expect(isSaved('model.layers.3.self_attn.q_norm', ['norm'])).toBe(true);
    expect(isSaved('model.layers.3.norm_1', ['norm'])).toBe(false);
  });

  it('takes what stands inside such a module', () => {
    expect(isSaved('model.multi_modal_projector.linear_2', ['multi_modal_projector'])).toBe(true);
    expect(isSaved('model.multi_modal_projector_2.linear', ['multi_modal_projector'])).toBe(false);
    expect(isSaved('lm_head', [])).toBe(false);
  });
});
