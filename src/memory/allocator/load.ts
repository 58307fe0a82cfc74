import type { Parameter, QuantisedWeight } from '../parameters.ts';
import { roundUp } from '../tape/tape.ts';
import type { Shards, StepInput } from '../walk/step.ts';
import type { Allocation } from './caching-allocator.ts';

/** Where weights are put. */
export interface Allocator {
  allocate(bytes: number): Allocation;
  release(allocation: Allocation): void;
}

/** Weights one by one; a quantised one is made from a 16-bit one that is gone afterwards. */
export function loadWhole(allocator: Allocator, { groups, quantised }: StepInput['plan']): void {
  for (const { parameter, count } of groups) {
    for (let i = 0; i < count; i += 1) allocator.allocate(parameter.bytes);
  }
  for (const { weight, count } of quantised) {
    for (let i = 0; i < count; i += 1) makeQuantised(allocator, weight);
  }
}

function makeQuantised(allocator: Allocator, weight: QuantisedWeight): Allocation {
  const dense = allocator.allocate(roundUp(weight.elements * 2));
  const packed = allocator.allocate(weight.bytes);
  allocator.release(dense);
  return packed;
}

/**
 * FSDP unit by unit: its tensors on the device, joined, and a shard copied out of that. Quantised weights too: they go
 * to the host or to the meta device as soon as they are packed (transformers modeling_utils.py, fsdp_qlora train.py).
 */
export function loadShards(
  allocator: Allocator,
  { plan, description }: Pick<StepInput, 'plan' | 'description'>,
  { share, storesFp32 }: Shards,
): void {
  const layers = description.layers.length + (description.encoder?.layers.length ?? 0);
  const units = layers + 1;
  const wide = (parameter: Parameter): number =>
    storesFp32 && parameter.trainable ? parameter.elements * 4 : parameter.bytes;
  const tensors = [
    ...plan.groups.map(({ parameter, count }) => ({
      bytes: parameter.bytes,
      stored: wide(parameter),
      count,
      weight: undefined,
    })),
    ...plan.quantised.map(({ weight, count }) => ({ bytes: weight.bytes, stored: weight.bytes, count, weight })),
  ];
  /** How many of a group's tensors unit `unit` holds; the root comes last. */
  const held = (count: number, unit: number): number => {
    if (count < layers) return unit === layers ? count : 0;
    return unit === layers ? 0 : Math.floor((count * (unit + 1)) / layers) - Math.floor((count * unit) / layers);
  };
  const make = (unit: number): Allocation[] =>
    tensors.flatMap(({ bytes, count, weight }) =>
      Array.from({ length: held(count, unit) }, () =>
        weight ? makeQuantised(allocator, weight) : allocator.allocate(bytes),
      ),
    );
  for (let unit = 0; unit < units; unit += 1) {
    const own = make(unit);
    const joined = tensors.reduce((sum, { stored, count }) => sum + stored * held(count, unit), 0);
    const flat = allocator.allocate(roundUp(joined));
    for (const allocation of own) allocator.release(allocation);
    allocator.allocate(roundUp(joined * share));
    allocator.release(flat);
  }
}
