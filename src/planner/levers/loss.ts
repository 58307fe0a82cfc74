import type { PlanValues } from '../../spec/index.ts';
import type { Lever } from './lever.ts';

/** Both losses multiply with the head's weight themselves, so an adapter on the head would be passed over. */
const trainsHead = ({ lora }: PlanValues): boolean =>
  lora !== null &&
  [...(Array.isArray(lora.targetModules) ? lora.targetModules : []), ...lora.modulesToSave].some((name: string) =>
    /(^|\.)(lm_head|output_layer|embed_out)$/.test(name),
  );

/** Cross-entropy that never holds the logits of every token. */
export const loss: Lever = {
  id: 'loss',
  class: 'free',
  title: 'chunked or fused cross-entropy',
  needs: [],
  survivesCheckpoint: true,
  moves: ['forward', 'backward', 'eval'],
  options: (values, { packages, platform }) => {
    if (values.lossImpl === 'fused') return [];
    if (trainsHead(values)) return 'the output head is trained by an adapter';
    const fused = packages.liger === true && platform === 'linux' ? [{ lossImpl: 'fused' as const }] : [];
    if (values.lossImpl === 'full') return [{ lossImpl: 'chunked' }, ...fused];
    if (fused.length > 0) return fused;
    return packages.liger === 'unknown' ? 'whether liger_kernel imports is not known' : 'liger_kernel does not import';
  },
  cost: () => ({ factor: 1, text: 'none' }),
};
