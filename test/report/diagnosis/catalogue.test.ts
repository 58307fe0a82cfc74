import { describe, expect, it } from 'vitest';
import { CATALOGUE, LANGUAGES } from '../../../src/report/diagnosis/phrases/index.ts';

const placeholders = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

describe('the catalogue', () => {
  it('has every phrase in every language, with the same values to fill in', () => {
    expect(Object.keys(CATALOGUE).length).toBeGreaterThan(150);
    for (const [id, phrase] of Object.entries(CATALOGUE)) {
      for (const language of LANGUAGES) {
        if (id !== 'phase.unknown') expect(phrase[language].trim(), `${id} in ${language}`).not.toBe('');
        expect(placeholders(phrase[language]), `${id} in ${language}`).toEqual(placeholders(phrase.en));
      }
    }
  });

  it('is written in Chinese letters where it says so, and in none where it does not', () => {
    for (const [id, { en, zh }] of Object.entries(CATALOGUE)) {
      expect(en, id).not.toMatch(/[\u3000-\u9fff\uff00-\uffef]/);
      if (zh !== '' && !/^label\.(?:line|rank)$/.test(id)) expect(zh, id).toMatch(/[\u4e00-\u9fff]/);
    }
  });

  it('uses the words of the field', () => {
    expect(CATALOGUE['title.vram_capacity']!.zh).toContain('显存');
    expect(CATALOGUE['title.host_ram']!.zh).toContain('内存');
    expect(CATALOGUE['remedy.gradient-checkpointing']!.zh).toContain('梯度检查点');
    expect(CATALOGUE['remedy.micro-batch']!.zh).toContain('累积步数');
    // 显存 is memory of the card, 内存 that of the host; a text of one never speaks of the other alone.
    expect(CATALOGUE['title.host_ram']!.zh).not.toContain('显存');
  });
});
