import type { FloatDType } from '../../core/index.ts';
import type { Surroundings } from '../plan.ts';

/** bf16 wants Ampere; older cards emulate it slowly (`torch.cuda.is_bf16_supported()` counts that as support). */
export const sixteenBit = ({ computeCapability }: Surroundings): FloatDType =>
  computeCapability && computeCapability.major < 8 ? 'fp16' : 'bf16';
