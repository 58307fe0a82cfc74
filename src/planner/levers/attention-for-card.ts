import type { Lever } from './lever.ts';

/**
 * FlashAttention 2 and 3 stop at once on cards below compute capability 8.0. Source:
 * https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support
 */
export const attentionForCard: Lever = {
  id: 'attention-for-card',
  class: 'free',
  title: 'attention that the card can run (sdpa)',
  needs: [],
  survivesCheckpoint: true,
  moves: [],
  required: true,
  options: ({ attnImplementation }, { computeCapability }) =>
    computeCapability && computeCapability.major < 8 && attnImplementation.startsWith('flash_attention')
      ? [{ attnImplementation: 'sdpa' }]
      : [],
};
