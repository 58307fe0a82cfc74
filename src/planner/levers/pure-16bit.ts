import type { Lever } from './lever.ts';
import { sixteenBit } from './sixteen-bit.ts';

/** Trained weights, gradients and states in bf16 alone: half of everything, and updates below its 8 bits are lost. */
export const pure16bit: Lever = {
  id: 'pure-bf16',
  class: 'method',
  title: 'trained weights in bf16, without fp32 copies',
  needs: [],
  survivesCheckpoint: false,
  moves: ['load', 'forward', 'backward', 'optimizer', 'eval', 'save', 'resume'],
  options: ({ method, dtype }, surroundings) => {
    if (method !== 'full' || dtype !== 'fp32') return [];
    // fp16 has no range for it: small gradients become zero without a scaler, which wants fp32 weights.
    return sixteenBit(surroundings) === 'bf16'
      ? [{ dtype: 'bf16', mixedPrecision: 'no' }]
      : 'the card has no bf16, and fp16 alone does not train';
  },
  loses: () => 'weights are updated in bf16 alone; wants stochastic rounding or a higher learning rate',
};
