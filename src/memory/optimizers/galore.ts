import type { ParameterGroup } from '../parameters.ts';
import { F32, roundUp } from '../tape/tape.ts';
import { adafactor } from './adafactor.ts';
import { bytesLike, isProjected, projectionOf, svdBytes, svdProjectionBytes } from './low-rank.ts';
import type { OptimizerCost, OptimizerFamily, OptimizerSettings } from './optimizer.ts';
import { blockwiseState, largest, loopTemporary, widened } from './shared.ts';

type Cost = (groups: readonly ParameterGroup[], settings: OptimizerSettings) => OptimizerCost;

/** The projected weights and the rest. */
function partition(groups: readonly ParameterGroup[], settings: OptimizerSettings) {
  const projected = groups.filter((group) => isProjected(group, settings));
  return { projected, others: groups.filter((group) => !projected.includes(group)) };
}

const sum = (groups: readonly ParameterGroup[], bytes: (group: ParameterGroup) => number): number =>
  groups.reduce((total, group) => total + group.count * bytes(group), 0);

/** GaLoreAdamW.step, a loop over tensors: denominator and update at once, the update projected back and multiplied. */
const adamw: Cost = (groups, settings) => {
  const { projected, others } = partition(groups, settings);
  const low = (group: ParameterGroup): number => bytesLike(group, projectionOf(group, settings).lowRank);
  const whole = (group: ParameterGroup): number => group.parameter.bytes;
  return {
    statesBytes:
      sum(others, (group) => 2 * whole(group)) +
      sum(projected, (group) => 2 * low(group) + svdProjectionBytes(group, settings, group.parameter.dtype === F32)),
    temporaryBytes: Math.max(
      loopTemporary(others, (group) => 2 * whole(group), whole),
      loopTemporary(
        projected,
        (group) => 2 * low(group) + whole(group),
        (group) => 2 * whole(group) + low(group),
      ),
      largest(projected, svdBytes),
    ),
    hostBytes: 0,
  };
};

/** GaLoreAdamW8bit.step: both moments in blocks; a projected weight is swapped for its low-rank stand-in meanwhile. */
const adamw8bit: Cost = (groups, settings) => {
  const { projected, others } = partition(groups, settings);
  return {
    statesBytes:
      sum(others, ({ parameter }) => 2 * blockwiseState(parameter.elements)) +
      sum(projected, (group) => {
        const wide = group.parameter.dtype === F32;
        return 2 * blockwiseState(projectionOf(group, settings).lowRank) + svdProjectionBytes(group, settings, wide);
      }),
    temporaryBytes: Math.max(
      largest(
        projected,
        (group) => 2 * group.parameter.bytes + 2 * bytesLike(group, projectionOf(group, settings).lowRank),
      ),
      largest(projected, svdBytes),
    ),
    hostBytes: 0,
  };
};

/** GaLoreAdafactor.step: statistics of the projected gradient, everything of it in fp32. */
const adafactorStep: Cost = (groups, settings) => {
  const { projected, others } = partition(groups, settings);
  const plain = adafactor.cost(others, settings);
  return {
    statesBytes:
      plain.statesBytes +
      sum(projected, (group) => {
        const { lowRank, rank } = projectionOf(group, settings);
        return svdProjectionBytes(group, settings, true) + roundUp((lowRank / rank) * 4) + roundUp(rank * 4);
      }),
    temporaryBytes: Math.max(
      plain.temporaryBytes,
      largest(projected, (group) => {
        const low = roundUp(projectionOf(group, settings).lowRank * 4);
        return widened(group) + 2 * roundUp(group.parameter.elements * 4) + 2 * low;
      }),
      largest(projected, svdBytes),
    ),
    hostBytes: 0,
  };
};

const FORMULA = 'projected weights: states of rank × the longer side and one projection; all others: as without GaLore';

const family = (names: readonly string[], cost: Cost, file: string): OptimizerFamily => ({
  names,
  source: `galore_torch 1.0 ${file}, galore_projector.py; transformers 5.17 trainer_optimizer.py`,
  formula: FORMULA,
  cost,
});

/** One optimizer a tensor, stepped by a hook as soon as its gradient is there (transformers `LayerWiseDummyOptimizer`). */
const layerwise = (plain: OptimizerFamily): OptimizerFamily => ({
  ...plain,
  names: plain.names.map((name) => `${name}_layerwise`),
  formula: `${plain.formula}; each gradient ends as soon as its tensor is updated, in the backward pass`,
  cost: (groups, settings) => ({ ...plain.cost(groups, settings), temporaryBytes: 0 }),
  updateBytes: (parameter) => 2 * parameter.bytes,
});

const adamwFamily = family(['galore_adamw'], adamw, 'adamw.py');
const adamw8bitFamily = family(['galore_adamw_8bit'], adamw8bit, 'adamw8bit.py');
const adafactorFamily = family(['galore_adafactor'], adafactorStep, 'adafactor.py');

export const galore: readonly OptimizerFamily[] = [
  adamwFamily,
  adamw8bitFamily,
  adafactorFamily,
  layerwise(adamwFamily),
  layerwise(adamw8bitFamily),
  {
    ...layerwise(adafactorFamily),
    updateBytes: ({ elements, dtype }) => (dtype === F32 ? 2 : 4) * roundUp(elements * 4),
  },
];
