import type { PlanValues } from '../../spec/index.ts';
import type { Surroundings } from '../plan.ts';
import type { Lever } from './lever.ts';

/** FlashAttention-2 wants Ampere or newer and 16-bit queries. Source: https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support */
function flashObstacle(values: PlanValues, { packages, computeCapability }: Surroundings): string | undefined {
  if (packages.flashAttn === 'unknown') return 'whether flash_attn imports is not known';
  if (!packages.flashAttn) return 'flash_attn does not import';
  if (!computeCapability) return 'the compute capability of the card is not known';
  if (computeCapability.major < 8) return 'flash attention needs compute capability 8.0';
  return values.dtype === 'fp32' && values.mixedPrecision === 'no' ? 'flash attention needs bf16 or fp16' : undefined;
}

/** Attention that never holds the whole score matrix. */
export const attention: Lever = {
  id: 'attention',
  class: 'free',
  title: 'attention without the score matrix',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: (values, surroundings) => {
    const { attnImplementation } = values;
    if (attnImplementation !== 'eager' && attnImplementation !== 'sdpa') return [];
    const obstacle = flashObstacle(values, surroundings);
    if (attnImplementation === 'sdpa') return obstacle ?? [{ attnImplementation: 'flash_attention_2' }];
    return obstacle
      ? [{ attnImplementation: 'sdpa' }]
      : [{ attnImplementation: 'sdpa' }, { attnImplementation: 'flash_attention_2' }];
  },
  cost: () => ({ factor: 1, text: 'none' }),
};
