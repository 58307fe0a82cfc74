import type { PlanValues } from '../../spec/index.ts';

/** Chunked and fused losses multiply with the head's weight themselves, so an adapter on the head would be passed over. */
export const trainsHead = ({ lora }: PlanValues): boolean =>
  lora !== null &&
  [...(Array.isArray(lora.targetModules) ? lora.targetModules : []), ...lora.modulesToSave].some((name: string) =>
    /(^|\.)(lm_head|output_layer|embed_out)$/.test(name),
  );
