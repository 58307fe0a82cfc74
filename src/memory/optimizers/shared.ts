import type { ParameterGroup } from '../parameters.ts';
import { type Dtype, F32, roundUp, widthOf } from '../tape/tape.ts';

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
 * Highest transient of a Python loop over the tensors, whose names hold the values of the last turn until they are bound
 * again: `held` bytes of the tensor before, `made` bytes of this one. Groups of equal tensors follow themselves.
 */
export function loopTemporary(
  groups: readonly ParameterGroup[],
  held: (group: ParameterGroup) => number,
  made: (group: ParameterGroup) => number,
): number {
  let most = 0;
  let before = 0;
  for (const group of groups) {
    const own = made(group);
    const kept = held(group);
    most = Math.max(most, before + own, group.count > 1 ? kept + own : 0);
    before = kept;
  }
  return most;
}

/**
 * A foreach step takes the tensors dtype by dtype; a list it makes lives until the next one is bound, so two dtypes'
 * lists meet.
 */
export function foreachTemporary(groups: readonly ParameterGroup[], copies = 1): number {
  return tensorsLike(groups, copies);
}

/** One blockwise 8-bit state of bitsandbytes: one byte an element and one fp32 scale per 256; small tensors stay fp32. */
export const blockwiseState = (elements: number): number =>
  elements < 4096 ? roundUp(elements * 4) : roundUp(elements) + roundUp(Math.ceil(elements / 256) * 4);

/** `copies` such states of every tensor. */
export function blockwiseStates(groups: readonly ParameterGroup[], copies: number): number {
  let total = 0;
  for (const { parameter, count } of groups) total += count * copies * blockwiseState(parameter.elements);
  return total;
}

/** A tensor of this one's size in fp32; nothing where it is fp32 itself, which `.float()` returns as it is. */
export const widened = ({ parameter }: ParameterGroup): number =>
  parameter.dtype === F32 ? 0 : roundUp(parameter.elements * 4);
