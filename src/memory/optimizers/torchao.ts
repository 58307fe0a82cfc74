import type { ParameterGroup } from '../parameters.ts';
import { roundUp } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { largest, scalarPerTensor } from './shared.ts';

/** Two quantised states of `bits` with one fp32 scale per `block`; small tensors stay whole. The step dequantises one tensor at a time. */
const lowBit = (name: string, bits: number, block: number): OptimizerFamily => ({
  names: [name],
  source: 'torchao optim/adam.py, subclass_8bit.py, subclass_4bit.py',
  cost: (groups) => ({
    statesBytes:
      groups.reduce((total, group) => total + group.count * 2 * state(group, bits, block), 0) + scalarPerTensor(groups),
    temporaryBytes: largest(groups, ({ parameter }) => 2 * parameter.elements * 4),
    hostBytes: 0,
  }),
});

function state({ parameter }: ParameterGroup, bits: number, block: number): number {
  const { elements } = parameter;
  if (elements < 4096 || elements % block !== 0) return parameter.bytes;
  return roundUp((elements * bits) / 8) + roundUp((elements / block) * 4);
}

export const torchao: readonly OptimizerFamily[] = [
  lowBit('adamw_torch_8bit', 8, 256),
  lowBit('adamw_torch_4bit', 4, 128),
];
