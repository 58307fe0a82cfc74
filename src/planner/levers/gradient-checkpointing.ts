import type { Lever } from './lever.ts';

/** One more forward pass beside a forward and a backward that is worth two: 4/3, less what is not recomputed (head, loss, optimizer). */
const RECOMPUTE = 1.3;

/** Keeps only the layer boundaries in the forward pass and computes the rest again in the backward pass. */
export const gradientCheckpointing: Lever = {
  id: 'gradient-checkpointing',
  class: 'exact',
  title: 'gradient checkpointing',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward'],
  options: ({ gradientCheckpointing: current }) =>
    current.enabled
      ? []
      : [{ gradientCheckpointing: { enabled: true, useReentrant: false, everyNLayers: 1, offload: current.offload } }],
  roughFactor: () => RECOMPUTE,
};
