import { trainsHead } from './head.ts';
import type { Lever } from './lever.ts';

/** Cross-entropy over blocks of tokens, so that the logits of all of them never exist at once. */
export const loss: Lever = {
  id: 'loss',
  class: 'free',
  title: 'chunked cross-entropy',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: (values) => {
    if (values.lossImpl !== 'full') return [];
    return trainsHead(values) ? 'the output head is trained by an adapter' : [{ lossImpl: 'chunked' }];
  },
};
