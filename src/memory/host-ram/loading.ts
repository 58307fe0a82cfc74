import { versionFacts } from '../versions.ts';
import { type HostInput, type HostTerms, loadedWidth } from './host-input.ts';

/** Tensors that transformers 5 reads at a time (core_model_loading.py GLOBAL_WORKERS). */
const READERS = 4;
/** Shards that `save_pretrained` writes before transformers 5, and so what older checkpoints consist of, bytes. */
const OLD_SHARD = 5e9;

export type LoadingInput = Pick<HostInput, 'values' | 'sharding' | 'model'>;

/**
 * `from_pretrained`. safetensors files are mapped, not read: their pages count as resident once touched, are shared by all
 * ranks, and are given up when anything else needs the room. Only what is converted to another dtype, or copied, is memory of a
 * rank's own. transformers 5 keeps every shard mapped to the end; before it, one shard at a time and a copy of each weight.
 */
export function loading(input: LoadingInput): HostTerms {
  const { values, model } = input;
  const old = versionFacts(values.versions).smallFiles;
  const stored = model.parameters * model.storedWidth;
  const mappedCheckpoint = old ? Math.min(stored, OLD_SHARD) : stored;
  const width = upcastWidth(input);
  const copied = old || width !== model.storedWidth;
  // Quantised weights go to the device one by one.
  const perCopy = values.quantization ? READERS * model.largestWeight * width : copied ? model.parameters * width : 0;
  return { loading: perCopy * loadingRanks(input), mappedCheckpoint };
}

/** accelerate makes a model that FSDP trains in mixed precision fp32 before it is sharded (fsdp2_prepare_model). */
const upcastWidth = (input: LoadingInput): 2 | 4 => (input.sharding.storesFp32 ? 4 : loadedWidth(input));

/**
 * Ranks that hold weights of their own while loading: FSDP's cpu_ram_efficient_loading and zero.Init read them on one rank, or
 * none at a time.
 */
function loadingRanks({ values, sharding }: LoadingInput): number {
  const { strategy, processesPerNode } = values.distributed;
  if (strategy === 'dp') return 1;
  return sharding.engine === 'fsdp' || strategy === 'zero3' ? 1 : processesPerNode;
}
