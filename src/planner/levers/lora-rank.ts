import type { Lever } from './lever.ts';

const SMALLEST = 8;

/** A lower rank with the same scaling. */
export const loraRank: Lever = {
  id: 'lora-rank',
  class: 'method',
  title: 'a lower LoRA rank',
  needs: [],
  survivesCheckpoint: false,
  moves: ['forward', 'backward', 'optimizer', 'save', 'resume'],
  options: ({ lora }) => {
    if (!lora) return [];
    const halvings = Math.max(0, Math.floor(Math.log2(lora.r / SMALLEST)));
    return Array.from({ length: halvings }, (_, index) => {
      const share = 2 ** (index + 1);
      return { lora: { ...lora, r: Math.floor(lora.r / share), loraAlpha: lora.loraAlpha / share } };
    });
  },
  loses: (_, to) => `adapters of rank ${to.lora?.r ?? 0}`,
};
