import { type AllocatorSetting, assignments } from '../allocator-conf.ts';
import type { Lever } from './lever.ts';

const has = (settings: readonly AllocatorSetting[], key: string): AllocatorSetting | undefined =>
  settings.find((setting) => setting.key === key);

/**
 * Segments that grow in place, so that freed blocks of other sizes can be used again.
 * Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf
 */
export const allocator: Lever = {
  id: 'allocator',
  class: 'free',
  title: 'expandable segments in the allocator',
  needs: [{ kind: 'platform', name: 'linux' }],
  survivesCheckpoint: true,
  moves: ['load', 'forward', 'backward', 'optimizer', 'eval', 'save', 'resume'],
  options: ({ allocatorConf, objective }) => {
    const settings = assignments(allocatorConf);
    const current = has(settings, 'expandable_segments');
    if (current?.value.toLowerCase() === 'true') return [];
    if (current) return 'the launch turns expandable segments off';
    if (has(settings, 'backend')?.value.toLowerCase() === 'cudamallocasync')
      return 'the cudaMallocAsync backend has no segments';
    // vLLM's sleep mode keeps a pool of its own and asserts when segments are expandable (pytorch#147851).
    if (objective === 'grpo' || objective === 'rloo')
      return 'expandable segments break a vLLM engine that shares the card';
    return [{ allocatorConf: [...settings.map(({ text }) => text), 'expandable_segments:True'].join(',') }];
  },
};
