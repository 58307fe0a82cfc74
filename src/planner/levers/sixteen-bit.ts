import type { FloatDType } from '../../core/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import type { Surroundings } from '../plan.ts';

/** bf16 wants Ampere; older cards emulate it slowly (`torch.cuda.is_bf16_supported()` counts that as support). */
export const sixteenBit = ({ computeCapability }: Surroundings): FloatDType =>
  computeCapability && computeCapability.major < 8 ? 'fp16' : 'bf16';

/** Weights in 16 bits, and autocast with them where one setting of the tool decides both; `dtype` alone where that can be told. */
export function weightsIn16Bit(surroundings: Surroundings): Partial<PlanValues> {
  const dtype = sixteenBit(surroundings);
  if (surroundings.writable('dtype', dtype, { dtype }) === true || dtype === 'fp32') return { dtype };
  const both = { dtype, mixedPrecision: dtype } as const;
  return surroundings.writable('dtype', dtype, both) === true ? both : { dtype };
}
