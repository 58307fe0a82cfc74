import type { RamEstimate } from '../estimate.ts';
import { dataloader, loaderOf } from './dataloader.ts';
import type { HostInput, HostTerms } from './host-input.ts';
import { loading } from './loading.ts';
import { offload, offloadedActivations, pagedStates } from './offload.ts';
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
  const held = {
    ...base,
    ...offloaded,
    pagedStates: pagedStates(input) * ranks,
    offloadedActivations: offloadedActivations(input) * ranks,
    ...dataloader(loaderOf(input)),
  };
  // With FSDP the whole model and the shards that stay on the host are there together; DeepSpeed moves it to the device first.
  const whileLoading = sharding.engine === 'fsdp' ? offloaded : {};
  return largestStage([{ ...base, ...whileLoading, ...loading(input) }, held, { ...held, saving: saving(input) }]);
}

const perNode = (terms: HostTerms, ranks: number): HostTerms =>
  Object.fromEntries(Object.entries(terms).map(([name, bytes]) => [name, bytes * ranks]));

/** Rounded to whole bytes; parts that are nothing are left out. */
const rounded = (terms: HostTerms): HostTerms =>
  Object.fromEntries(
    Object.entries(terms)
      .map(([name, bytes]) => [name, Math.round(bytes)] as const)
      .filter(([name, bytes]) => bytes > 0 || name === 'pythonStack'),
  );

const sum = (terms: HostTerms): number => Object.values(terms).reduce((total, bytes) => total + bytes, 0);
const needed = (terms: HostTerms): number => sum(terms) - (terms[TAKEN_BACK] ?? 0);

/** The stage with the highest peak, and what the hungriest one cannot do without. */
export function largestStage(stages: readonly HostTerms[]): RamEstimate {
  const whole = stages.map(rounded);
  const terms = whole.reduce((most, stage) => (sum(stage) > sum(most) ? stage : most));
  return { peakBytes: sum(terms), neededBytes: Math.max(...whole.map(needed)), terms };
}
