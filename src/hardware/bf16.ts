import { type Diagnostic, warning } from '../core/index.ts';
import type { Gpu } from './hardware.ts';

/**
 * bf16 on a card without units for it: PyTorch emulates some operations slowly and refuses others.
 * Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions (compute capability 8.0).
 */
export function bf16Warnings({ name, computeCapability }: Gpu): readonly Diagnostic[] {
  if (!computeCapability || computeCapability.major >= 8) return [];
  const { major, minor } = computeCapability;
  return [
    warning(
      'no-bf16',
      `the run computes in bf16, which ${name} (compute capability ${major}.${minor}) has no units for`,
      {
        notes: ['bf16 needs compute capability 8.0 (Ampere) or newer; older cards emulate it slowly or fail'],
        help: 'use fp16 instead of bf16, or a card of the Ampere generation or newer',
      },
    ),
  ];
}
