import { type HostTerms, loadedWidth } from './host-input.ts';
import type { LoadingInput } from './loading.ts';

export interface Merge {
  readonly adapterBytes: number;
  /** Elements of the largest weight that the adapter changes. */
  readonly largestTarget: number;
}

/**
 * `merge_and_unload` on the host (peft tuners/lora/layer.py): each merged weight is written to, so a mapped one becomes a page of
 * our own instead; beside it stand the adapter and the product of its factors for one layer, in fp32 and in the weight's dtype.
 */
export function merging({ values, model }: LoadingInput, { adapterBytes, largestTarget }: Merge): HostTerms {
  const width = loadedWidth({ values });
  return {
    mergedWeights: model.parameters * width,
    adapter: adapterBytes,
    merging: largestTarget * (width === 4 ? 4 : 4 + width),
  };
}
