import type { OffloadTarget, PlanValues } from '../../spec/index.ts';
import type { Lever } from './lever.ts';

/** What each engine can keep in host RAM, the milder first: DeepSpeed parameters only at stage 3, FSDP all or nothing. */
function targets({ strategy }: PlanValues['distributed']): readonly (readonly OffloadTarget[])[] {
  switch (strategy) {
    case 'zero1':
    case 'zero2':
      return [['optimizer']];
    case 'zero3':
      return [['optimizer'], ['optimizer', 'parameters']];
    case 'fsdp1':
    case 'fsdp2':
    case 'hsdp':
      return [['optimizer', 'parameters']];
    default:
      return [];
  }
}

/** Optimizer states, then parameters, in host RAM. Source: https://arxiv.org/abs/2101.06840 */
export const offload: Lever = {
  id: 'offload',
  class: 'exact',
  title: 'optimizer states or parameters in host RAM',
  needs: [],
  survivesCheckpoint: false,
  moves: ['forward', 'backward', 'optimizer', 'eval', 'save', 'resume'],
  options: ({ distributed }) =>
    targets(distributed)
      .filter((wanted) => wanted.length > distributed.offload.filter((one) => one !== 'activations').length)
      .map((wanted) => ({
        distributed: {
          ...distributed,
          offload: [...wanted, ...distributed.offload.filter((one) => one === 'activations')],
        },
      })),
  roughFactor: (_, to) => (to.distributed.offload.includes('parameters') ? 2 : 1.4),
};
