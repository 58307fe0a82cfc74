import type { Lever } from './lever.ts';

/**
 * FlashAttention-2: Ampere or newer, 16-bit queries.
 * Source: https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support
 */
export const flashAttention: Lever = {
  id: 'flash-attention',
  class: 'free',
  title: 'flash attention',
  needs: [
    { kind: 'platform', name: 'linux' },
    { kind: 'package', name: 'flashAttn', whenUnknown: 'missing' },
  ],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: ({ attnImplementation, dtype, mixedPrecision }, { computeCapability }) => {
    if (attnImplementation !== 'eager' && attnImplementation !== 'sdpa') return [];
    if (!computeCapability) return 'the compute capability of the card is not known';
    if (computeCapability.major < 8) return 'flash attention needs compute capability 8.0';
    if (dtype === 'fp32' && mixedPrecision === 'no') return 'flash attention needs bf16 or fp16';
    return [{ attnImplementation: 'flash_attention_2' }];
  },
};
