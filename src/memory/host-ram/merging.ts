import { type HostTerms, loadedWidth } from './host-input.ts';
import type { LoadingInput } from './loading.ts';

/**
 * `merge_and_unload` on the host (peft tuners/lora/layer.py): each merged weight is written to, so a mapped one becomes a page of
 * our own instead; beside it stand the adapter and the product of its factors for one layer, in fp32 and in the weight's dtype.
 */
export function merging({ values, model }: LoadingInput, adapterBytes: number): HostTerms {
  const width = loadedWidth({ values });
  return {
    mergedWeights: model.parameters * width,
    adapter: adapterBytes,
    merging: model.largestWeight * (width === 4 ? 4 : 4 + width),
  };
}
