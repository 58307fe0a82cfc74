import { type Allocation, CachingAllocator } from './caching-allocator.ts';
import { LiveBlocks } from './live-blocks.ts';
import type { ReserveInput } from './reserve.ts';
import { GRADIENT_ID, INPUT_ID, PRODUCT_ID, type ScriptEntry, UNIT } from './script.ts';

/** As for the estimate, but for what is made before the first step. */
export interface SimulationInput extends Omit<ReserveInput, 'load' | 'lead'> {
  readonly load: (allocator: CachingAllocator) => void;
}

/** Bytes reserved after `steps` steps: every allocation of a step in its order, on one allocator. */
export function simulateReserved(input: SimulationInput): number {
  const allocator = new CachingAllocator();
  const script = expand(input.script);
  const live = new LiveBlocks(script);
  const reduction = new Reduction(allocator, input.gradientShare);
  let lastOutput: Allocation | undefined;
  let lastGradient: Allocation | undefined;
  const threads = new Set<ScriptEntry['kind']>();
  const multiply = (thread: ScriptEntry['kind']): void => {
    // The autograd engine runs in a thread with a handle of its own.
    if (threads.has(thread)) return;
    threads.add(thread);
    allocator.allocate(input.workspaceBytes);
  };

  input.load(allocator);
  for (let step = 0; step < input.steps; step += 1) {
    const inputs = new Map<number, Allocation>();
    let turned = false;
    for (const { instance, log, resultId, kind } of script) {
      const offset = live.offset(instance);
      if (kind === 'forward' && lastOutput !== undefined) inputs.set(instance, lastOutput);
      if (kind === 'backward' && !turned) {
        turned = true;
        if (step === 0 && input.lossSegmentBytes > 0) allocator.release(allocator.segment(input.lossSegmentBytes));
      }
      for (let i = 0; i < log.length; i += 2) {
        const id = log[i]!;
        if (id > 0) {
          live.set(offset + id, allocator.allocate(log[i + 1]! * UNIT));
          continue;
        }
        if (id === PRODUCT_ID) {
          multiply(kind);
          continue;
        }
        let freed: Allocation | undefined;
        if (id === -INPUT_ID) {
          freed = inputs.get(instance);
          inputs.delete(instance);
        } else if (id === -GRADIENT_ID) {
          freed = lastGradient;
          lastGradient = undefined;
        } else freed = live.take(offset - id);
        if (freed !== undefined) allocator.release(freed);
      }
      const result = resultId === 0 ? undefined : live.take(offset + resultId);
      if (kind === 'forward') lastOutput = result;
      else if (result !== undefined) lastGradient = result;
      if (kind === 'backward' && (instance > 0 || input.gradientShare === 0)) reduction.take(live, log, offset);
    }
    reduction.finish();
    if (step === 0) {
      for (const { bytes, count } of input.states) {
        for (let i = 0; i < count; i += 1) allocator.allocate(bytes);
      }
    }
    const temporaries: Allocation[] = [];
    for (const { bytes, count } of input.temporaries) {
      for (let i = 0; i < count; i += 1) temporaries.push(allocator.allocate(bytes));
    }
    for (const allocation of temporaries) allocator.release(allocation);
    // zero_grad: what the backward pass has left are gradients.
    reduction.forget();
    live.takeAll((allocation) => allocator.release(allocation));
    for (const allocation of inputs.values()) allocator.release(allocation);
    if (lastOutput !== undefined) allocator.release(lastOutput);
    if (lastGradient !== undefined) allocator.release(lastGradient);
    lastOutput = undefined;
    lastGradient = undefined;
  }
  return input.otherBytes + allocator.reserved;
}

/** Every layer by itself, in the order they run. */
function expand(script: readonly ScriptEntry[]): ScriptEntry[] {
  return script.flatMap((entry) => {
    const layers = Array.from({ length: entry.times }, (_, i) => ({
      ...entry,
      instance: entry.instance + i,
      times: 1,
    }));
    return entry.kind === 'backward' ? layers.reverse() : layers;
  });
}

/** Stream of FSDP's reduce-scatter. */
const REDUCING = 1;

/** Layers that the host is ahead of the device: FSDP waits for the second last gathering before it starts another. */
const LAYERS_AHEAD = 2;

/**
 * FSDP 1 after a layer's backward pass: its gradients are joined in one tensor, which is reduced on a stream of its own into a
 * shard that lasts until the step ends; the joined ones come back when the device is done with them
 * (torch/distributed/fsdp/_runtime_utils.py `_post_backward_hook`).
 */
class Reduction {
  private readonly joined: Allocation[] = [];
  private shards: Allocation[] = [];

  constructor(
    private readonly allocator: CachingAllocator,
    private readonly share: number | undefined,
  ) {}

  /** What the stretch with this log has left in `live`. */
  take(live: LiveBlocks, log: ScriptEntry['log'], offset: number): void {
    if (this.share === undefined) return;
    const parts: Allocation[] = [];
    let bytes = 0;
    for (let i = 0; i < log.length; i += 2) {
      const part = log[i]! > 0 ? live.take(offset + log[i]!) : undefined;
      if (part === undefined) continue;
      parts.push(part);
      bytes += log[i + 1]! * UNIT;
    }
    if (bytes === 0) return;
    if (this.share > 0) this.joined.push(this.allocator.allocate(bytes));
    for (const part of parts) this.allocator.release(part);
    if (this.share === 0) return;
    this.shards.push(this.allocator.allocate(Math.ceil(bytes * this.share), REDUCING));
    if (this.joined.length > LAYERS_AHEAD) this.allocator.release(this.joined.shift()!);
  }

  finish(): void {
    for (const allocation of this.joined.splice(0)) this.allocator.release(allocation);
  }

  forget(): void {
    for (const shard of this.shards) this.allocator.release(shard);
    this.shards = [];
  }
}
