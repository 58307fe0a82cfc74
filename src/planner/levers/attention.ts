import type { Lever } from './lever.ts';

/** PyTorch's own attention, which holds no score matrix where a kernel for the mask exists. */
export const attention: Lever = {
  id: 'attention',
  class: 'free',
  title: 'attention without the score matrix (sdpa)',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: ({ attnImplementation }) => (attnImplementation === 'eager' ? [{ attnImplementation: 'sdpa' }] : []),
};
