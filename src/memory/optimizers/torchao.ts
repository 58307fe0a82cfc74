import type { ParameterGroup } from '../parameters.ts';
import { roundUp } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';
import { largest } from './shared.ts';

/** transformers passes `block_size` 256 for both widths unless `optim_args` says otherwise (trainer_optimizer.py). */
const BLOCK = 256;

/**
 * Two quantised states of `bits` with one fp32 scale a block and a lookup table; tensors that are small or not whole blocks
 * keep the weight's dtype. The compiled step holds both moments of one tensor in fp32.
 */
const lowBit = (name: string, bits: 4 | 8): OptimizerFamily => ({
  names: [name],
  source: `torchao 0.18 optim/adam.py, subclass_${bits}bit.py; transformers 5.17 trainer_optimizer.py`,
  formula: `two states of ${bits} bits an element and one fp32 scale per block of 256; two fp32 tensors of one weight in the step`,
  cost: (groups, { args }) => {
    const said = Number(args.get('block_size') ?? BLOCK);
    const block = Number.isSafeInteger(said) && said > 0 ? said : BLOCK;
    return {
      statesBytes: groups.reduce((total, group) => total + group.count * 2 * state(group, bits, block), 0),
      temporaryBytes: largest(groups, ({ parameter }) => 2 * parameter.elements * 4),
      hostBytes: 0,
    };
  },
});

function state({ parameter }: ParameterGroup, bits: 4 | 8, block: number): number {
  const { elements } = parameter;
  if (elements < 4096 || elements % block !== 0) return parameter.bytes;
  return roundUp((elements * bits) / 8) + roundUp((elements / block) * 4) + roundUp(2 ** bits * 4);
}

export const torchao: readonly OptimizerFamily[] = [lowBit('adamw_torch_8bit', 8), lowBit('adamw_torch_4bit', 4)];
