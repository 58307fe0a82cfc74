import type { HostRamLever } from '../report/index.ts';
import type { PlanValues } from '../spec/index.ts';

/** One way of needing less host RAM: the settings it changes; undefined: it is as far down as it goes. */
export interface HostRamMove {
  readonly lever: HostRamLever['lever'];
  readonly turnDown: (values: PlanValues) => Partial<PlanValues> | undefined;
  /** For people, when it is pulled. */
  readonly cost: string;
  /** Whether /dev/shm is where it saves. */
  readonly movesShm: boolean;
}

/** Every setting that moves host RAM, turned as far down as it goes. */
export const HOST_RAM_MOVES: readonly HostRamMove[] = [
  {
    lever: 'workers',
    turnDown: ({ dataloaderNumWorkers: workers }) => (workers > 0 ? { dataloaderNumWorkers: 0 } : undefined),
    cost: 'batches are loaded between the steps',
    movesShm: true,
  },
  {
    lever: 'offload',
    turnDown: ({ distributed, gradientCheckpointing }) =>
      distributed.offload.length > 0 || gradientCheckpointing.offload
        ? {
            distributed: { ...distributed, offload: [] },
            gradientCheckpointing: { ...gradientCheckpointing, offload: false },
          }
        : undefined,
    cost: 'more GPU memory',
    movesShm: false,
  },
  {
    lever: 'ranks',
    turnDown: ({ distributed }) =>
      distributed.processesPerNode > 1 && distributed.strategy !== 'dp'
        ? { distributed: { ...distributed, processesPerNode: Math.ceil(distributed.processesPerNode / 2) } }
        : undefined,
    cost: 'fewer GPUs',
    movesShm: false,
  },
  {
    lever: 'pin-memory',
    turnDown: ({ dataloaderPinMemory: pins }) => (pins ? { dataloaderPinMemory: false } : undefined),
    cost: 'slower copies to the GPU',
    movesShm: false,
  },
];
