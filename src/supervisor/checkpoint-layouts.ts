import { join } from 'node:path';
import type { FilePort } from '../core/index.ts';
import { type Flaw, findTorchFileFlaw, findWeightsFlaw } from './checkpoint-files.ts';

const named = (name: string, flaw: Flaw): Flaw => (flaw === undefined ? undefined : `${name} ${flaw}`);
const isFolder = (path: string, files: FilePort): boolean => files.info(path)?.kind === 'folder';

/** First flaw of several files; undefined when all are whole. */
const firstFlaw = (folder: string, names: readonly string[], find: (path: string) => Flaw): Flaw => {
  for (const name of names) {
    const flaw = named(name, find(join(folder, name)));
    if (flaw !== undefined) return flaw;
  }
  return undefined;
};

/** Every shard that a sharded index names. */
function findShardFlaw(folder: string, indexName: string, files: FilePort): Flaw {
  const text = files.readText(join(folder, indexName));
  if (!text.ok) return `${indexName} cannot be read (${text.code})`;
  let map: Record<string, string> | undefined;
  try {
    map = (JSON.parse(text.value) as { weight_map?: Record<string, string> }).weight_map;
  } catch {
    return `${indexName} is not JSON`;
  }
  const shards = [...new Set(Object.values(map ?? {}))];
  if (shards.length === 0) return `${indexName} names no shard`;
  return firstFlaw(folder, shards, (path) => findWeightsFlaw(path, files));
}

/** A folder of torch's distributed checkpoint: `.metadata` is written last, by one rank, when all shards are there. */
function findDistributedFlaw(folder: string, name: string, files: FilePort): Flaw {
  const path = join(folder, name);
  const names = files.list(path);
  if (!names.includes('.metadata')) return `${name}/.metadata is missing`;
  const shards = names.filter((one) => one.endsWith('.distcp'));
  if (shards.length === 0) return `${name} has no .distcp file`;
  return firstFlaw(path, shards, (shard) => (files.info(shard)?.sizeBytes ? undefined : 'is empty'));
}

/** DeepSpeed's own folder: `latest` names it, and each rank has written its part of the states. */
function findDeepSpeedFlaw(folder: string, files: FilePort): Flaw {
  const latest = files.readText(join(folder, 'latest'));
  if (!latest.ok) return 'latest is missing beside a DeepSpeed state';
  const tag = latest.value.trim();
  const path = join(folder, tag);
  const names = files.list(path);
  const models = names.filter((name) => name.endsWith('model_states.pt'));
  const optimizers = names.filter((name) => name.endsWith('optim_states.pt'));
  if (models.length === 0) return `${tag} has no model states`;
  if (optimizers.length === 0) return `${tag} has no optimizer states`;
  const ranks = files.list(folder).filter((name) => /^rng_state_\d+\.pth$/.test(name)).length;
  const zero = optimizers.filter((name) => /zero_pp_rank_\d+_mp_rank_00/.test(name)).length;
  if (zero > 0 && ranks > zero && zero === optimizers.length)
    return `${tag} has optimizer states of ${zero} of ${ranks} ranks`;
  return firstFlaw(path, [...models, ...optimizers], (state) => findTorchFileFlaw(state, files));
}

const SINGLE_WEIGHTS = [
  'model.safetensors',
  'adapter_model.safetensors',
  'pytorch_model.bin',
  'adapter_model.bin',
  'pytorch_model_fsdp.bin',
];
const INDEXES = [
  'model.safetensors.index.json',
  'pytorch_model.bin.index.json',
  'adapter_model.safetensors.index.json',
];
const SINGLE_OPTIMIZERS = ['optimizer.pt', 'optimizer.bin'];

/** What a Hugging Face checkpoint folder lacks for going on from it. Adapters, FSDP and DeepSpeed layouts are read too. */
export function findStateFlaw(folder: string, files: FilePort): Flaw {
  const names = files.list(folder);
  const deepSpeed = names.some((name) => /^global_step\d+$/.test(name) && isFolder(join(folder, name), files));
  const single = SINGLE_WEIGHTS.filter((name) => names.includes(name));
  const indexes = INDEXES.filter((name) => names.includes(name));
  const distributed = names.filter((name) => /^pytorch_model_fsdp_\d+$/.test(name));
  const perRank = names.filter((name) => /^pytorch_model_fsdp(?:_\d+)?_rank\d+\.bin$/.test(name));
  if (single.length + indexes.length + distributed.length + perRank.length === 0 && !deepSpeed) return 'no weights';

  const weights =
    firstFlaw(folder, [...single, ...perRank], (path) => findWeightsFlaw(path, files)) ??
    indexes.map((name) => findShardFlaw(folder, name, files)).find((flaw) => flaw !== undefined) ??
    distributed.map((name) => findDistributedFlaw(folder, name, files)).find((flaw) => flaw !== undefined);
  if (weights !== undefined) return weights;
  if (deepSpeed) return findDeepSpeedFlaw(folder, files);

  const optimizers = names.filter(
    (name) =>
      SINGLE_OPTIMIZERS.includes(name) ||
      /^(?:optimizer\.pt_\S+|rank\d+-of-\d+-optimizer\.pt|optimizer_\d+_rank\d+\.bin)$/.test(name),
  );
  const sharded = names.filter((name) => /^optimizer_\d+$/.test(name) && isFolder(join(folder, name), files));
  if (optimizers.length + sharded.length === 0) return 'no optimizer state';
  return (
    firstFlaw(folder, optimizers, (path) => findTorchFileFlaw(path, files)) ??
    sharded.map((name) => findDistributedFlaw(folder, name, files)).find((flaw) => flaw !== undefined)
  );
}
