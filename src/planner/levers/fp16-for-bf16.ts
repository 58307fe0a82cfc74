import type { PlanValues } from '../../spec/index.ts';
import type { Lever } from './lever.ts';
import { sixteenBit } from './sixteen-bit.ts';

/** Everything that is bf16 in fp16; what is trained is held in fp32, without which the gradient scaler refuses to work. */
function inFp16(values: PlanValues): Partial<PlanValues> {
  const { method, dtype, mixedPrecision, quantization, lora } = values;
  const trainsWeights = method === 'full';
  return {
    ...(dtype === 'bf16' ? { dtype: trainsWeights ? 'fp32' : 'fp16' } : {}),
    ...(mixedPrecision === 'bf16' || (dtype === 'bf16' && trainsWeights) ? { mixedPrecision: 'fp16' } : {}),
    ...(quantization?.computeDtype === 'bf16' ? { quantization: { ...quantization, computeDtype: 'fp16' } } : {}),
    ...(lora?.adapterDtype === 'bf16' ? { lora: { ...lora, adapterDtype: 'fp32' } } : {}),
  };
}

/**
 * bf16 wants compute capability 8.0: below it PyTorch emulates some operations slowly and refuses others. Source:
 * https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions, torch/amp/grad_scaler.py.
 */
export const fp16ForBf16: Lever = {
  id: 'fp16-for-bf16',
  class: 'near',
  title: 'fp16 where the card has no bf16',
  needs: [],
  survivesCheckpoint: false,
  moves: [],
  required: true,
  options: (values, surroundings) => {
    if (sixteenBit(surroundings) !== 'fp16') return [];
    const set = inFp16(values);
    return Object.keys(set).length > 0 ? [set] : [];
  },
  loses: () => 'fp16 has less range than bf16; the card has no bf16',
};
