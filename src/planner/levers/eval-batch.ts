import type { Lever } from './lever.ts';

/** Smaller batches in evaluation; nothing is trained there, so only its time changes. */
export const evalBatch: Lever = {
  id: 'eval-batch',
  class: 'exact',
  title: 'smaller evaluation batch',
  needs: [],
  survivesCheckpoint: true,
  moves: ['eval'],
  options: ({ eval: evaluates, perDeviceEvalBatchSize }) => {
    if (!evaluates) return [];
    const halvings = Math.max(0, Math.floor(Math.log2(perDeviceEvalBatchSize)));
    return Array.from({ length: halvings }, (_, index) => ({
      perDeviceEvalBatchSize: Math.floor(perDeviceEvalBatchSize / 2 ** (index + 1)),
    }));
  },
  loses: () => 'evaluation takes more passes',
};
