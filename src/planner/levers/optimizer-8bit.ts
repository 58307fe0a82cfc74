import type { Lever } from './lever.ts';
import { eightBitOptimizer } from './optimizer-names.ts';

/** Optimizer states in blocks of 8 bits. Source: https://huggingface.co/docs/bitsandbytes/optimizers */
export const optimizer8bit: Lever = {
  id: 'optimizer-8bit',
  class: 'near',
  title: '8-bit optimizer states',
  needs: [
    { kind: 'package', name: 'bitsandbytes', whenUnknown: 'present' },
    { kind: 'whole-parameters', what: 'an 8-bit optimizer' },
  ],
  survivesCheckpoint: false,
  moves: ['optimizer', 'forward', 'backward', 'eval', 'save', 'resume'],
  options: ({ optim }) => {
    const name = eightBitOptimizer(optim);
    return name ? [{ optim: name }] : [];
  },
  roughFactor: () => 1.01,
  loses: () => 'optimizer states lose precision',
};
