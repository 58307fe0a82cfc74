import { trainsHead } from './head.ts';
import type { Lever } from './lever.ts';

/** Liger's cross-entropy, one kernel with the head. Source: https://github.com/linkedin/Liger-Kernel */
export const fusedLoss: Lever = {
  id: 'fused-loss',
  class: 'free',
  title: 'cross-entropy fused with the head',
  needs: [
    { kind: 'platform', name: 'linux' },
    { kind: 'package', name: 'liger', whenUnknown: 'missing' },
  ],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: (values) => {
    if (values.lossImpl === 'fused') return [];
    return trainsHead(values) ? 'the output head is trained by an adapter' : [{ lossImpl: 'fused' }];
  },
};
