import { F32 } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { blockwiseStates, tensorsLike } from './shared.ts';

const SOURCE = 'bitsandbytes 0.50 optim/optimizer.py Optimizer2State, Optimizer1State';
const BLOCKS = 'of one byte an element and one fp32 scale per 256; tensors below 4096 elements in fp32';
const inWords = (states: number): string => (states === 1 ? 'one state' : states === 2 ? 'two states' : 'three states');

/** Blockwise 8-bit states; the update is one kernel a tensor, in place. */
const eightBit = (names: readonly string[], states: number): OptimizerFamily => ({
  names,
  source: SOURCE,
  formula: `${inWords(states)} ${BLOCKS}`,
  cost: (groups) => ({ statesBytes: blockwiseStates(groups, states), temporaryBytes: 0, hostBytes: 0 }),
});

/** fp32 states. */
const thirtyTwoBit = (names: readonly string[], states: number): OptimizerFamily => ({
  names,
  source: SOURCE,
  formula: `${inWords(states)} in fp32`,
  cost: (groups) => ({ statesBytes: tensorsLike(groups, states, F32), temporaryBytes: 0, hostBytes: 0 }),
});

/** Tensors below this size are not paged (bitsandbytes `Optimizer8bit.get_state_buffer`). */
const PAGED_FROM = 100_000;

/** The same states in CUDA managed memory: not PyTorch's, on the host whenever the device is full. */
const paged = (family: OptimizerFamily): OptimizerFamily => ({
  names: family.names.map((name) => `paged_${name}`),
  source: family.source,
  formula: `${family.formula}; tensors from 100,000 elements on in CUDA managed memory, outside PyTorch`,
  cost: (groups, settings) => ({
    statesBytes: family.cost(
      groups.filter(({ parameter }) => parameter.elements < PAGED_FROM),
      settings,
    ).statesBytes,
    temporaryBytes: 0,
    hostBytes: family.cost(
      groups.filter(({ parameter }) => parameter.elements >= PAGED_FROM),
      settings,
    ).statesBytes,
  }),
});

export const bitsandbytes: readonly OptimizerFamily[] = [
  eightBit(['adamw_8bit', 'adamw_bnb_8bit'], 2),
  eightBit(['lion_8bit', 'rmsprop_bnb_8bit'], 1),
  eightBit(['ademamix_8bit'], 3),
  thirtyTwoBit(['lion_32bit', 'rmsprop_bnb', 'rmsprop_bnb_32bit'], 1),
  thirtyTwoBit(['ademamix'], 3),
  paged(thirtyTwoBit(['adamw_32bit', 'adamw'], 2)),
  paged(eightBit(['adamw_8bit'], 2)),
  paged(thirtyTwoBit(['lion_32bit'], 1)),
  paged(eightBit(['lion_8bit'], 1)),
  paged(thirtyTwoBit(['ademamix_32bit', 'ademamix'], 3)),
  paged(eightBit(['ademamix_8bit'], 3)),
];
