import type { Lever } from './lever.ts';

/** Fewer processes that prepare batches: each is a copy of the trainer's Python with batches of its own in host RAM. */
export const dataloaderWorkers: Lever = {
  id: 'dataloader-workers',
  class: 'exact',
  title: 'fewer DataLoader workers',
  needs: [],
  survivesCheckpoint: true,
  // None of the device's: only host RAM is moved.
  moves: [],
  options: ({ dataloaderNumWorkers: now }) =>
    [...new Set([now > 3 ? Math.floor(now / 2) : 1, now > 1 ? 1 : 0, 0])]
      .filter((workers) => workers < now)
      .map((dataloaderNumWorkers) => ({ dataloaderNumWorkers })),
  loses: () => 'the GPU may wait for batches',
};
