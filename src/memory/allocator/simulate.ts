import { type Allocation, CachingAllocator } from './caching-allocator.ts';
import { GRADIENT_ID, INPUT_ID, type ScriptEntry } from './script.ts';

/** Tensors that outlive a step: `count` of `bytes` each. */
export interface TensorList {
  readonly bytes: number;
  readonly count: number;
}

export interface SimulationInput {
  readonly residentBytes: number;
  readonly script: readonly ScriptEntry[];
  /** Made by the first optimizer step. */
  readonly states: readonly TensorList[];
  /** Made and freed by every optimizer step. */
  readonly temporaries: readonly TensorList[];
  readonly steps: number;
}

const SPAN = 2 ** 22;

/** Bytes reserved after `steps` steps: every allocation of a step in its order, on one allocator. */
export function simulateReserved(input: SimulationInput): number {
  const allocator = new CachingAllocator();
  const live = new Map<number, Allocation>();
  let lastOutput: Allocation | undefined;
  let lastGradient: Allocation | undefined;
  const lists = (tensors: readonly TensorList[]): Allocation[] =>
    tensors.flatMap(({ bytes, count }) => Array.from({ length: count }, () => allocator.allocate(bytes)));

  for (let step = 0; step < input.steps; step += 1) {
    const inputs = new Map<number, Allocation>();
    for (const { instance, log, resultId, kind } of input.script) {
      const base = instance * SPAN;
      if (kind === 'forward' && lastOutput !== undefined) inputs.set(instance, lastOutput);
      for (let i = 0; i < log.length; i += 2) {
        const id = log[i]!;
        if (id > 0) {
          live.set(base + id, allocator.allocate(log[i + 1]!));
          continue;
        }
        const freed =
          -id === INPUT_ID ? inputs.get(instance) : -id === GRADIENT_ID ? lastGradient : live.get(base - id);
        if (freed === undefined) continue;
        if (-id === INPUT_ID) inputs.delete(instance);
        else if (-id === GRADIENT_ID) lastGradient = undefined;
        else live.delete(base - id);
        allocator.release(freed);
      }
      const result = resultId === 0 ? undefined : live.get(base + resultId);
      if (result !== undefined) live.delete(base + resultId);
      if (kind === 'forward') lastOutput = result;
      else if (result !== undefined) lastGradient = result;
    }
    if (step === 0) lists(input.states);
    for (const allocation of lists(input.temporaries)) allocator.release(allocation);
    // zero_grad: what the backward pass has left are gradients.
    for (const allocation of live.values()) allocator.release(allocation);
    for (const allocation of inputs.values()) allocator.release(allocation);
    live.clear();
    if (lastOutput !== undefined) allocator.release(lastOutput);
    if (lastGradient !== undefined) allocator.release(lastGradient);
    lastOutput = undefined;
    lastGradient = undefined;
  }
  return input.residentBytes + allocator.reserved;
}
