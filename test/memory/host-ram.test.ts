import { describe, expect, it } from 'vitest';
import { GiB, MiB } from '../../src/core/index.ts';
import { hostRamOnCpu } from '../../src/memory/host-ram/cpu-run.ts';
import { cpuStep } from '../../src/memory/host-ram/cpu-step.ts';
import { dataloader } from '../../src/memory/host-ram/dataloader.ts';
import { datasetBytes } from '../../src/memory/host-ram/datasets.ts';
import { hostModelOf, pinnedSize } from '../../src/memory/host-ram/host-input.ts';
import { loading } from '../../src/memory/host-ram/loading.ts';
import { merging } from '../../src/memory/host-ram/merging.ts';
import { pythonStack } from '../../src/memory/host-ram/python-stack.ts';
import { largestStage } from '../../src/memory/host-ram/stages.ts';
import { estimateMemory, type RamEstimate } from '../../src/memory/index.ts';
import { planParameters } from '../../src/memory/parameters.ts';
import { shardingOf } from '../../src/memory/sharding.ts';
import { walkRun } from '../../src/memory/walk-run.ts';
import type { Distributed, PlanValues, Strategy } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const LARGE = {
  ...SMALL_LLAMA,
  hidden_size: 4096,
  intermediate_size: 11008,
  num_hidden_layers: 30,
  num_attention_heads: 32,
};
const small = factsOf({ ...SMALL_LLAMA, dtype: 'bfloat16' });
const large = factsOf({ ...LARGE, dtype: 'bfloat16' });

function ram(changes: Partial<PlanValues> = {}, facts = small): RamEstimate {
  const estimate = estimateMemory(plan(changes), facts);
  if (!estimate.ok) throw new Error(estimate.error[0]!.message);
  return estimate.value.ram;
}

const spread = (strategy: Strategy, processesPerNode: number, offload: Distributed['offload'] = []) => ({
  distributed: { nodes: 1, processesPerNode, strategy, offload },
});

describe('host RAM of a run on GPUs', () => {
  it('terms are whole bytes that add up, none of them nothing', () => {
    for (const changes of [
      {},
      { dataloaderNumWorkers: 3 },
      { dtype: 'fp32' },
      spread('zero3', 4, ['optimizer', 'parameters']),
    ] as const) {
      const { peakBytes, neededBytes, terms } = ram(changes);
      const sizes = Object.values(terms);
      expect(sizes.reduce((total, bytes) => total + bytes, 0)).toBe(peakBytes);
      expect(sizes.every((bytes) => Number.isSafeInteger(bytes) && bytes > 0)).toBe(true);
      expect(neededBytes).toBeGreaterThan(0);
      expect(neededBytes).toBeLessThanOrEqual(peakBytes);
    }
  });

  it('a checkpoint in its own dtype is mapped: resident, but not needed', () => {
    const { peakBytes, neededBytes, terms } = ram({ method: 'lora', lora: LORA }, large);
    expect(terms.mappedCheckpoint).toBe(large.parameters * 2);
    expect(terms.loading).toBeUndefined();
    expect(peakBytes).toBeGreaterThan(neededBytes + 8 * GiB);
  });

  it('another dtype is memory of each rank, the mapped files are there once', () => {
    const one = ram({ dtype: 'fp32', ...spread('ddp', 1) }, large).terms;
    const four = ram({ dtype: 'fp32', ...spread('ddp', 4) }, large).terms;
    expect(one.loading).toBe(large.parameters * 4);
    expect(four.loading).toBe(4 * one.loading!);
    expect(four.mappedCheckpoint).toBe(one.mappedCheckpoint);
  });

  it('engines that read the checkpoint on one rank need one copy', () => {
    for (const strategy of ['fsdp2', 'zero3'] as const) {
      expect(ram({ dtype: 'fp32', ...spread(strategy, 4) }, large).terms.loading).toBe(large.parameters * 4);
    }
  });

  it('before transformers 5 weights were copied, a shard at a time', () => {
    const versions = { ...plan().versions, transformers: '4.51.3' };
    const { terms } = ram({ versions }, large);
    expect(terms.loading).toBe(large.parameters * 2);
    expect(terms.mappedCheckpoint).toBe(5e9);
  });

  it('quantised weights pass through one by one', () => {
    const quantization = {
      bits: 4,
      quantType: 'nf4',
      doubleQuant: true,
      computeDtype: 'bf16',
      upcastRestToFp32: true,
    } as const;
    const whole = ram({ dtype: 'fp32', method: 'lora', lora: LORA }, large);
    const quantised = ram({ dtype: 'fp32', method: 'qlora', lora: LORA, quantization }, large);
    expect(quantised.neededBytes).toBeLessThan(whole.neededBytes / 3);
  });

  it('each rank is a Python with CUDA of its own', () => {
    const [one, two, eight] = [1, 2, 8].map((ranks) => ram(spread('ddp', ranks)).terms);
    expect(two!.pythonStack! - one!.pythonStack!).toBe(pythonStack(2) - pythonStack(1));
    expect(eight!.cudaRuntime).toBe(8 * one!.cudaRuntime!);
    expect(one!.launcher).toBeUndefined();
    expect(two!.launcher).toBe(eight!.launcher);
    // nn.DataParallel is one process with threads.
    expect(ram(spread('dp', 2)).terms.cudaRuntime).toBe(one!.cudaRuntime);
  });

  it('workers count per rank, and only when there are any', () => {
    const workers = (count: number, ranks = 1): number =>
      ram({ dataloaderNumWorkers: count, ...spread('ddp', ranks) }).terms.dataloaderWorkers ?? 0;
    expect(workers(0)).toBe(0);
    expect(workers(4)).toBe(2 * workers(2));
    expect(workers(2, 3)).toBe(3 * workers(2));
    expect(ram({ dataloaderPinMemory: false }).terms.pinnedBuffers).toBeUndefined();
    expect(ram({ perDeviceTrainBatchSize: 24 }).terms.pinnedBuffers).toBeGreaterThan(ram().terms.pinnedBuffers!);
  });

  it('nothing is offloaded unless asked', () => {
    const offloaded = (changes: Partial<PlanValues>): string[] =>
      Object.keys(ram(changes).terms).filter((name) => /^offloaded|^pinnedRounding/.test(name));
    for (const strategy of ['ddp', 'zero2', 'zero3', 'fsdp1', 'fsdp2'] as const) {
      expect(offloaded(spread(strategy, 2))).toEqual([]);
    }
    expect(offloaded({ gradientCheckpointing: CHECKPOINTING })).toEqual([]);
    expect(offloaded(spread('zero2', 2, ['optimizer']))).toContain('offloadedStates');
  });

  it('ZeRO-Offload: 16 bytes a weight over all ranks, pinned ones rounded up to powers of two', () => {
    const { terms } = ram(spread('zero2', 2, ['optimizer']));
    expect(terms.offloadedStates! + terms.offloadedGradients!).toBe(16 * small.parameters);
    const partition = small.parameters * 2;
    expect(terms.pinnedRounding).toBe(2 * 2 * (pinnedSize(partition) - partition));
    expect(terms.offloadedParameters).toBeUndefined();
    const three = ram(spread('zero3', 2, ['optimizer', 'parameters'])).terms;
    expect(three.offloadedParameters).toBeGreaterThanOrEqual(2 * small.parameters);
    expect(three.offloadedParameters).toBeLessThan(2.01 * small.parameters);
  });

  it('FSDP offload holds shards, gradients and states in fp32 under mixed precision', () => {
    for (const strategy of ['fsdp1', 'fsdp2'] as const) {
      const { terms } = ram({ mixedPrecision: 'bf16', ...spread(strategy, 4, ['optimizer', 'parameters']) });
      const held = terms.offloadedStates! + terms.offloadedGradients! + terms.offloadedParameters!;
      expect(held / small.parameters).toBeGreaterThan(15.9);
      expect(held / small.parameters).toBeLessThan(16.2);
      expect(terms.pinnedRounding).toBeGreaterThan(0);
    }
  });

  it('offloaded activations: one pinned buffer a layer', () => {
    const { terms } = ram({ gradientCheckpointing: { ...CHECKPOINTING, offload: true } });
    expect(terms.offloadedActivations).toBe(7 * pinnedSize(3 * 384 * 768 * 2));
  });

  it('a save copies what is trained; an adapter is little', () => {
    const full = ram(
      { dtype: 'bf16', perDeviceTrainBatchSize: 1, maxLength: 8 },
      { ...large, checkpointDtype: 'bf16' },
    );
    expect(full.neededBytes).toBeGreaterThan(large.parameters * 2);
    const adapter = ram({ method: 'lora', lora: LORA }, large);
    expect(adapter.neededBytes).toBeLessThan(3 * GiB);
  });
});

describe('the parts', () => {
  it('pinned buffers are powers of two', () => {
    expect([0, 1, 1000, 4096, 2 ** 30 + 1].map(pinnedSize)).toEqual([0, 1, 1024, 4096, 2 ** 31]);
  });

  it('prefetched batches count per worker', () => {
    const size = (prefetch: number): number =>
      dataloader({ workers: 2, prefetch, pinMemory: false, ranks: 1, batchTokens: 1e6 }).dataloaderWorkers!;
    expect(size(4) - size(2)).toBe(2 * 2 * 3 * 8e6);
  });

  it('mapped rows are nobody’s, lists cost more than arrays', () => {
    expect(datasetBytes(1e6, 'mapped')).toBe(0);
    expect(datasetBytes(1e6, 'python-lists')).toBeGreaterThan(datasetBytes(1e6, 'arrow-in-memory'));
  });

  it('the largest stage wins, and what is needed may be another one', () => {
    const { terms, peakBytes, neededBytes } = largestStage([
      [{ pythonStack: 10 }, { mappedCheckpoint: 100, loading: 0 }],
      [{ pythonStack: 10, offloadedStates: 50.4 }],
    ]);
    expect([peakBytes, neededBytes]).toEqual([110, 60]);
    expect(Object.keys(terms)).toEqual(['pythonStack', 'mappedCheckpoint']);
  });
});

describe('a training step on a CPU', () => {
  const walked = (changes: Partial<PlanValues>) => {
    const run = walkRun(plan({ dtype: 'fp32', ...changes }), small, {}, {});
    if (!run.ok) throw new Error(run.error[0]!.message);
    return { run: run.value, highest: run.value.step.timeline.highest().peak.bytes };
  };

  it('takes at least what a device would have allocated, and what the passes leave behind', () => {
    for (const changes of [{}, { perDeviceTrainBatchSize: 8 }, { method: 'lora', lora: LORA }] as const) {
      const { run, highest } = walked(changes);
      expect(cpuStep(run)).toBeGreaterThanOrEqual(highest);
      expect(cpuStep(run)).toBeLessThan(2 * highest);
    }
  });

  it('grows by more than the peak does when rows are added, for both passes keep theirs', () => {
    const [few, many] = [1, 9].map((rows) => walked({ perDeviceTrainBatchSize: rows, method: 'lora', lora: LORA }));
    expect(cpuStep(many!.run) - cpuStep(few!.run)).toBeGreaterThan(1.5 * (many!.highest - few!.highest));
  });
});

describe('the same run on a CPU', () => {
  const values = plan({ dtype: 'fp32' });
  const parameters = planParameters(small.description, values);
  const load = { values, sharding: shardingOf(values), model: hostModelOf(values, small, parameters, 1) };

  it('has no CUDA, and keeps what would leave for a device', () => {
    const stack = hostRamOnCpu({ imports: 'trainer', ranks: 1 });
    expect(stack.peakBytes).toBeLessThan(500 * MiB);
    const trained = hostRamOnCpu({ imports: 'trainer', ranks: 1, load, stepBytes: 5 * GiB });
    expect(trained.terms.cudaRuntime).toBeUndefined();
    expect(trained.peakBytes).toBeGreaterThanOrEqual(stack.peakBytes + 5 * GiB);
    const loaded = hostRamOnCpu({ imports: 'trainer', ranks: 1, load });
    expect(loaded.peakBytes - stack.peakBytes).toBe(loading(load).loading! + loading(load).mappedCheckpoint!);
  });

  it('merging makes every weight memory of its own', () => {
    const merged = merging(load, { adapterBytes: 7 * MiB, largestTarget: 1000 });
    expect(merged.mergedWeights).toBe(small.parameters * 4);
    expect(merged.adapter).toBe(7 * MiB);
    expect(merged.merging).toBe(4000);
  });
});
