import { expect, it } from 'vitest';
import { MiB } from '../../src/core/index.ts';
import { estimateMemory } from '../../src/memory/index.ts';
import type { Distributed, PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const facts = factsOf({ ...SMALL_LLAMA, hidden_size: 3072, intermediate_size: 9216, num_hidden_layers: 20 });
const NF4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false } as const;

const vram = (changes: Partial<PlanValues>, ranks = 4, strategy: Distributed['strategy'] = 'fsdp1') => {
  const values = plan({
    method: 'lora',
    lora: LORA,
    perDeviceTrainBatchSize: 1,
    maxLength: 128,
    gradientCheckpointing: CHECKPOINTING,
    distributed: { nodes: 1, processesPerNode: ranks, strategy, offload: [] },
    ...changes,
  });
  const result = estimateMemory(values, facts);
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value.vram;
};
const QLORA = { method: 'qlora', quantization: NF4 } as const;
const context = ({ devicePeakBytes, reservedPeakBytes }: ReturnType<typeof vram>): number =>
  (devicePeakBytes - reservedPeakBytes) / MiB;

it('what quantised weights take beside the allocator comes with shards alone', () => {
  const { weights } = vram(QLORA).terms;
  const more = context(vram(QLORA)) - context(vram({}));
  // Seven tenths of what is quantised, which is most of a model this small.
  expect(more / ((4 * weights) / MiB)).toBeGreaterThan(0.4);
  expect(more / ((4 * weights) / MiB)).toBeLessThan(0.7);
  expect(more).toBeLessThan(2500);
  expect(context(vram(QLORA, 4, 'ddp'))).toBeCloseTo(context(vram({}, 4, 'ddp')), 0);
  expect(context(vram(QLORA, 1))).toBeCloseTo(context(vram({}, 1)), 0);
});

it('more than two ranks hold more buffers of NCCL, one rank none', () => {
  const [one, two, four, eight] = [1, 2, 4, 8].map((ranks) => context(vram({}, ranks)));
  expect(two! - one!).toBeCloseTo(1100, 0);
  expect(four! - one!).toBeCloseTo(1800, 0);
  expect(eight!).toBe(four);
});
