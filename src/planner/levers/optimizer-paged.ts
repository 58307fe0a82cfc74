import type { Lever } from './lever.ts';
import { pagedOptimizer } from './optimizer-names.ts';

/** Optimizer states in unified memory: pages move to host RAM while the rest of the step needs the room. */
export const optimizerPaged: Lever = {
  id: 'optimizer-paged',
  class: 'near',
  title: 'paged optimizer states',
  needs: [
    { kind: 'platform', name: 'linux' },
    { kind: 'package', name: 'bitsandbytes', whenUnknown: 'present' },
    { kind: 'whole-parameters', what: 'a paged optimizer' },
  ],
  survivesCheckpoint: false,
  moves: ['optimizer', 'forward', 'backward', 'eval', 'save', 'resume'],
  options: ({ optim }) => {
    const name = pagedOptimizer(optim);
    return name ? [{ optim: name }] : [];
  },
  // States cross PCIe twice a step where pages had to move.
  roughFactor: () => 1.2,
};
