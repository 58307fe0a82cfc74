import { allocator } from './allocator.ts';
import { attention } from './attention.ts';
import { evalBatch } from './eval-batch.ts';
import { flashAttention } from './flash-attention.ts';
import { frozenBase16bit } from './frozen-base-16bit.ts';
import { fusedLoss } from './fused-loss.ts';
import { gradientCheckpointing } from './gradient-checkpointing.ts';
import type { Lever } from './lever.ts';
import { lora } from './lora.ts';
import { loss } from './loss.ts';
import { maxLength } from './max-length.ts';
import { microBatch } from './micro-batch.ts';
import { optimizer8bit } from './optimizer-8bit.ts';
import { optimizerPaged } from './optimizer-paged.ts';
import { qlora } from './qlora.ts';

export * from './lever.ts';

/** Every lever, in the order they are applied: what a later one can do may depend on an earlier one. */
export const LEVERS: readonly Lever[] = [
  lora,
  qlora,
  frozenBase16bit,
  optimizer8bit,
  optimizerPaged,
  maxLength,
  gradientCheckpointing,
  attention,
  flashAttention,
  loss,
  fusedLoss,
  evalBatch,
  allocator,
  microBatch,
];
