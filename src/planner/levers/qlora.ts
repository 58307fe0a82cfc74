import type { FloatDType } from '../../core/index.ts';
import type { PlanValues, Quantization } from '../../spec/index.ts';
import type { Surroundings } from '../plan.ts';
import type { Lever } from './lever.ts';
import { sixteenBit, weightsIn16Bit } from './sixteen-bit.ts';

const nf4 = (computeDtype: FloatDType, upcastRestToFp32: boolean): Quantization => ({
  bits: 4,
  quantType: 'nf4',
  doubleQuant: true,
  computeDtype,
  upcastRestToFp32,
});

/** Trainers that call peft's k-bit preparation hold the rest in fp32; taken for granted unless only the other can be written. */
function quantization(
  computeDtype: FloatDType,
  together: Partial<PlanValues>,
  { writable }: Surroundings,
): Quantization {
  const canWrite = (to: Quantization): boolean =>
    writable('quantization', to, { ...together, quantization: to }) === true;
  const prepared = nf4(computeDtype, true);
  const plain = nf4(computeDtype, false);
  return !canWrite(prepared) && canWrite(plain) ? plain : prepared;
}

/** The frozen base of a LoRA run in 4 bits. Source: https://arxiv.org/abs/2305.14314 */
export const qlora: Lever = {
  id: 'qlora',
  class: 'qlora',
  title: 'frozen base in 4 bits (QLoRA)',
  needs: [
    { kind: 'package', name: 'bitsandbytes', whenUnknown: 'present' },
    // A 4-bit weight is shared out by FSDP and ZeRO-3 only with a storage dtype of its own; otherwise every rank keeps it whole.
    { kind: 'whole-parameters', what: 'a 4-bit base' },
  ],
  survivesCheckpoint: false,
  moves: ['load', 'forward', 'backward', 'optimizer', 'eval', 'save', 'resume'],
  options: (values, surroundings) => {
    if (values.method !== 'lora' || values.quantization) return [];
    const computeDtype = sixteenBit(surroundings);
    // What is not quantised (embeddings, norms, head) would stay in fp32; most trainers take the compute dtype from here too.
    const lowered = weightsIn16Bit(surroundings);
    const lowers = values.dtype === 'fp32' && surroundings.writable('dtype', computeDtype, lowered) === true;
    const set: Partial<PlanValues> = { method: 'qlora', ...(lowers ? lowered : {}) };
    const precision = { dtype: values.dtype, mixedPrecision: values.mixedPrecision };
    return [{ ...set, quantization: quantization(computeDtype, { ...precision, ...set }, surroundings) }];
  },
  roughFactor: () => 1.25,
  loses: () => 'frozen weights lose precision',
};
