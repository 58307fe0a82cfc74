import { activationOffload } from './activation-offload.ts';
import { allocator } from './allocator.ts';
import { attention } from './attention.ts';
import { attentionForCard } from './attention-for-card.ts';
import { dataloaderWorkers } from './dataloader-workers.ts';
import { evalBatch } from './eval-batch.ts';
import { flashAttention } from './flash-attention.ts';
import { fp16ForBf16 } from './fp16-for-bf16.ts';
import { frozenBase16bit } from './frozen-base-16bit.ts';
import { fusedLoss } from './fused-loss.ts';
import { gradientCheckpointing } from './gradient-checkpointing.ts';
import type { Lever } from './lever.ts';
import { lora } from './lora.ts';
import { loraRank } from './lora-rank.ts';
import { loraTargets } from './lora-targets.ts';
import { loss } from './loss.ts';
import { maxLength } from './max-length.ts';
import { microBatch } from './micro-batch.ts';
import { offload } from './offload.ts';
import { optimizer8bit } from './optimizer-8bit.ts';
import { optimizerPaged } from './optimizer-paged.ts';
import { pure16bit } from './pure-16bit.ts';
import { qlora } from './qlora.ts';
import { shardingStage } from './sharding-stage.ts';
import { syncedAccumulation } from './synced-accumulation.ts';

export * from './lever.ts';

/** Every lever, in the order they are applied: what a later one can do may depend on an earlier one. */
export const LEVERS: readonly Lever[] = [
  fp16ForBf16,
  attentionForCard,
  lora,
  loraTargets,
  loraRank,
  pure16bit,
  qlora,
  frozenBase16bit,
  shardingStage,
  offload,
  optimizer8bit,
  optimizerPaged,
  maxLength,
  gradientCheckpointing,
  activationOffload,
  attention,
  flashAttention,
  loss,
  fusedLoss,
  evalBatch,
  dataloaderWorkers,
  allocator,
  syncedAccumulation,
  microBatch,
];
