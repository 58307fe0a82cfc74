import type { RamEstimate } from '../estimate.ts';
import { dataloader, type LoaderInput } from './dataloader.ts';
import { datasetBytes, type RowStorage } from './datasets.ts';
import type { HostTerms } from './host-input.ts';
import { type LoadingInput, loading } from './loading.ts';
import { type Merge, merging } from './merging.ts';
import { type Imports, launcher, pythonStack } from './python-stack.ts';
import { largestStage } from './stages.ts';

/** A run without a GPU: what would leave for the device stays in host RAM. */
export interface CpuRun {
  readonly imports: Imports;
  readonly ranks: number;
  /** Absent: no model is loaded. */
  readonly load?: LoadingInput;
  /** A training step, bytes of one rank (`cpuStep`); absent: nothing is trained. */
  readonly stepBytes?: number;
  /** Absent: no adapter is merged. */
  readonly merge?: Merge;
  readonly loader?: LoaderInput;
  readonly rows?: { readonly integers: number; readonly storage: RowStorage };
}

/**
 * The same terms as `hostRam`, put together for the CPU: the measured runs of `npm run bench:ram` are such runs. A save copies
 * nothing here, for the weights are on the host already.
 */
export function hostRamOnCpu(run: CpuRun): RamEstimate {
  const { ranks, load, rows } = run;
  const base: HostTerms = {
    pythonStack: pythonStack(ranks, run.imports),
    launcher: launcher(ranks),
    dataset: rows ? datasetBytes(rows.integers, rows.storage) * ranks : 0,
  };
  const stages: HostTerms[][] = [[base]];
  if (load) stages.push([base, loading(load)]);
  if (load && run.merge) stages.push([base, merging(load, run.merge)]);
  if (run.stepBytes !== undefined) {
    stages.push([base, { step: run.stepBytes * ranks }, ...(run.loader ? [dataloader(run.loader)] : [])]);
  }
  return largestStage(stages);
}
