import type { PlanValues, Strategy } from '../../spec/index.ts';
import type { Lever } from './lever.ts';

/** DeepSpeed's stages in order; the FSDP of a launch shards everything already. */
const STAGES: readonly Strategy[] = ['zero1', 'zero2', 'zero3'];

/** The further stages of a launch that DeepSpeed runs. */
function further({ distributed, quantization }: PlanValues): readonly Strategy[] {
  const { strategy, nodes, processesPerNode } = distributed;
  if (nodes * processesPerNode < 2) return [];
  // Stage 3 gathers weights for use, which bitsandbytes' packed ones do not survive without a storage dtype of their own.
  return STAGES.slice(STAGES.indexOf(strategy) + 1).filter((stage) => stage !== 'zero3' || !quantization);
}

/** More of the states on other ranks. Source: https://arxiv.org/abs/1910.02054 */
export const shardingStage: Lever = {
  id: 'sharding-stage',
  class: 'exact',
  title: 'a further ZeRO stage',
  needs: [],
  survivesCheckpoint: false,
  moves: ['forward', 'backward', 'optimizer', 'save', 'resume'],
  options: (values) =>
    STAGES.includes(values.distributed.strategy)
      ? further(values).map((strategy) => ({ distributed: { ...values.distributed, strategy } }))
      : [],
  roughFactor: ({ distributed: from }, { distributed: to }) =>
    to.strategy === 'zero3' && from.strategy !== 'zero3' ? 1.2 : 1.02,
};
