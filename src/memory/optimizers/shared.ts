import type { ParameterGroup } from '../parameters.ts';
import { type Dtype, roundUp, widthOf } from '../tape/tape.ts';

/** Bytes of `copies` tensors like each trainable one, in its own dtype or a given one. */
export function tensorsLike(groups: readonly ParameterGroup[], copies: number, dtype?: Dtype): number {
  let total = 0;
  for (const { parameter, count } of groups) {
    total += count * copies * roundUp(parameter.elements * widthOf(dtype ?? parameter.dtype));
  }
  return total;
}

/** One small tensor (a step counter) for each. */
export const scalarPerTensor = (groups: readonly ParameterGroup[]): number =>
  512 * groups.reduce((total, group) => total + group.count, 0);

/** The largest value of `bytes` over single tensors. */
export function largest(groups: readonly ParameterGroup[], bytes: (group: ParameterGroup) => number): number {
  let most = 0;
  for (const group of groups) most = Math.max(most, bytes(group));
  return most;
}

/**
 * A foreach step takes the tensors dtype by dtype; a list it makes lives until the next one is bound, so two dtypes'
 * lists meet.
 */
export function foreachTemporary(groups: readonly ParameterGroup[], copies = 1): number {
  return tensorsLike(groups, copies);
}

/** Blockwise 8-bit states of bitsandbytes: one byte an element and one fp32 scale per 256; small tensors stay fp32. */
export function blockwiseStates(groups: readonly ParameterGroup[], copies: number): number {
  let total = 0;
  for (const { parameter, count } of groups) {
    const { elements } = parameter;
    const bytes = elements < 4096 ? roundUp(elements * 4) : roundUp(elements) + roundUp(Math.ceil(elements / 256) * 4);
    total += count * copies * bytes;
  }
  return total;
}
