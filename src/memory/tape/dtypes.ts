/** Number formats as small integers: this is the inner loop of the estimator. */
export const F32 = 0;
export const BF16 = 1;
export const F16 = 2;
export type Dtype = typeof F32 | typeof BF16 | typeof F16;
export const widthOf = (dtype: Dtype): number => (dtype === F32 ? 4 : 2);
/** Type promotion of two floating-point tensors. */
export const promote = (a: Dtype, b: Dtype): Dtype => (a === b ? a : F32);
