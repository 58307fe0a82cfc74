import { isBefore } from '../../memory/index.ts';
import type { Lever } from './lever.ts';

/**
 * FSDP holds whole gradients from one micro batch to the next, so that only the last one reduces. Reduced each time they stay
 * shards. Source: https://docs.pytorch.org/docs/stable/fsdp.html, `no_sync`.
 */
export const syncedAccumulation: Lever = {
  id: 'synced-accumulation',
  class: 'exact',
  title: 'gradients reduced after every micro batch',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'optimizer'],
  options: ({ distributed: { strategy }, syncsEachMicroBatch, versions }) => {
    if (syncsEachMicroBatch || (strategy !== 'fsdp1' && strategy !== 'fsdp2' && strategy !== 'hsdp')) return [];
    // Between 4.46 and 5.1 the Trainer passes over what it is told; 5.2 looks at it again.
    return isBefore(versions.transformers, '5.2')
      ? 'transformers before 5.2 reduces after the last micro batch, whatever it is told'
      : [{ syncsEachMicroBatch: true }];
  },
  roughFactor: ({ gradientAccumulationSteps }) => (gradientAccumulationSteps > 1 ? 1.05 : 1),
};
