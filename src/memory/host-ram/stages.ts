import type { RamEstimate } from '../estimate.ts';
import { dataloader, loaderOf } from './dataloader.ts';
import type { HostInput, HostTerms } from './host-input.ts';
import { loading } from './loading.ts';
import { offload, offloadedActivations } from './offload.ts';
import { cudaRuntime, launcher, pythonStack } from './python-stack.ts';
import { saving } from './saving.ts';

/** Pages of mapped files: resident, but the kernel takes them back when anything else needs the room. */
const TAKEN_BACK = 'mappedCheckpoint';

/**
 * Host memory of one node for a run on GPUs, by cause. Its three stages do not overlap, so the largest one counts: loading (after
 * it the weights leave for the device), training, saving.
 */
export function hostRam(input: HostInput): RamEstimate {
  const { values, sharding } = input;
  const ranks = values.distributed.strategy === 'dp' ? 1 : values.distributed.processesPerNode;
  const base = { pythonStack: pythonStack(ranks), launcher: launcher(ranks), cudaRuntime: cudaRuntime(ranks) };
  const offloaded = perNode(offload(input), ranks);
  const held = [
    base,
    offloaded,
    { offloadedActivations: offloadedActivations(input) * ranks },
    dataloader(loaderOf(input)),
  ];
  // With FSDP the whole model and the shards that stay on the host are there together; DeepSpeed moves it to the device first.
  const whileLoading = sharding.engine === 'fsdp' ? [base, offloaded] : [base];
  return largestStage([[...whileLoading, loading(input)], held, [...held, { saving: saving(input) }]]);
}

const perNode = (terms: HostTerms, ranks: number): HostTerms =>
  ranks === 1 ? terms : Object.fromEntries(Object.entries(terms).map(([name, bytes]) => [name, bytes * ranks]));

/** What is there at once, no name twice. */
type Stage = readonly HostTerms[];

/** The stage with the highest peak, without the parts that are nothing, and what the hungriest one cannot do without. */
export function largestStage(stages: readonly Stage[]): RamEstimate {
  let [largest, peakBytes, neededBytes] = [stages[0]!, 0, 0];
  for (const stage of stages) {
    let [peak, needed] = [0, 0];
    for (const terms of stage) {
      for (const name in terms) {
        // Every term is rounded by itself, so that they add up to whole bytes.
        const bytes = Math.round(terms[name]!);
        peak += bytes;
        if (name !== TAKEN_BACK) needed += bytes;
      }
    }
    if (peak > peakBytes) [largest, peakBytes] = [stage, peak];
    neededBytes = Math.max(neededBytes, needed);
  }
  const owners: Record<string, number> = {};
  for (const terms of largest) {
    for (const name in terms) {
      const bytes = Math.round(terms[name]!);
      if (bytes > 0) owners[name] = bytes;
    }
  }
  return { peakBytes, neededBytes, terms: owners };
}
