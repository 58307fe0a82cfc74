/**
 * bitsandbytes' form of an optimizer, by transformers' names (`OptimizerNames`). An optimizer that is not here keeps no
 * state worth shrinking (sgd, adafactor) or has no such form.
 */
const EIGHT_BIT: Readonly<Record<string, string>> = {
  adamw_torch: 'adamw_bnb_8bit',
  adamw_torch_fused: 'adamw_bnb_8bit',
  adamw_apex_fused: 'adamw_bnb_8bit',
  adamw_hf: 'adamw_bnb_8bit',
  paged_adamw_32bit: 'paged_adamw_8bit',
  lion_32bit: 'lion_8bit',
  paged_lion_32bit: 'paged_lion_8bit',
  ademamix: 'ademamix_8bit',
  paged_ademamix_32bit: 'paged_ademamix_8bit',
  rmsprop: 'rmsprop_bnb_8bit',
  rmsprop_bnb: 'rmsprop_bnb_8bit',
  rmsprop_bnb_32bit: 'rmsprop_bnb_8bit',
};

const PAGED: Readonly<Record<string, string>> = {
  adamw_torch: 'paged_adamw_32bit',
  adamw_torch_fused: 'paged_adamw_32bit',
  adamw_apex_fused: 'paged_adamw_32bit',
  adamw_hf: 'paged_adamw_32bit',
  adamw_bnb_8bit: 'paged_adamw_8bit',
  adamw_8bit: 'paged_adamw_8bit',
  lion_32bit: 'paged_lion_32bit',
  lion_8bit: 'paged_lion_8bit',
  ademamix: 'paged_ademamix_32bit',
  ademamix_8bit: 'paged_ademamix_8bit',
};

/** The same optimizer with 8-bit states; undefined: there is none. */
export const eightBitOptimizer = (optim: string): string | undefined => EIGHT_BIT[optim];
/** The same optimizer with states that may move to host RAM page by page; undefined: there is none. */
export const pagedOptimizer = (optim: string): string | undefined => PAGED[optim];
