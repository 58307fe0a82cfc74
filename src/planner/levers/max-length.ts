import type { Lever } from './lever.ts';

/** Rows shorter than this teach next to nothing of a conversation. */
const SHORTEST = 128;

/** Shorter rows, by halves: what stands beyond is cut. */
export const maxLength: Lever = {
  id: 'max-length',
  class: 'data',
  title: 'shorter rows',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: ({ maxLength: tokens }) => {
    const halvings = Math.max(0, Math.floor(Math.log2(tokens / SHORTEST)));
    return Array.from({ length: halvings }, (_, index) => ({ maxLength: Math.floor(tokens / 2 ** (index + 1)) }));
  },
  loses: (_, to) => `rows longer than ${to.maxLength} tokens are cut`,
};
