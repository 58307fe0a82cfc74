import type { Lever } from './lever.ts';

/** What checkpointing keeps between the layers goes to pinned host RAM and comes back in the backward pass. */
export const activationOffload: Lever = {
  id: 'activation-offload',
  class: 'exact',
  title: 'checkpointed activations in host RAM',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward'],
  options: ({ gradientCheckpointing: now }) =>
    now.enabled && !now.offload ? [{ gradientCheckpointing: { ...now, offload: true } }] : [],
  roughFactor: () => 1.1,
};
