import type { Versions } from '../../spec/index.ts';
import { versionFacts } from '../versions.ts';
import { type HostInput, loadedWidth } from './host-input.ts';

/** A file of `save_pretrained` and so what it copies to the host at a time, bytes (`max_shard_size`). */
const shardLimit = (versions: Versions): number => (versionFacts(versions).smallFiles ? 5e9 : 50e9);

/**
 * What a save on the GPU copies to the host of rank 0, bytes. safetensors collects the weights of one file first; torch.save
 * copies one optimizer tensor at a time, so the states themselves never count. Sharded engines gather whole weights on rank 0:
 * ZeRO-3 in 16 bit (`stage3_gather_16bit_weights_on_model_save`), FSDP as it stores them, FSDP1 the optimizer's states with them
 * (FULL_STATE_DICT).
 */
export function saving(input: HostInput): number {
  const { values, plan, sharding, model } = input;
  const { strategy } = values.distributed;
  const largestState = model.largestWeight * 4;
  if (sharding.engine === 'fsdp') {
    const weights = model.parameters * (sharding.storesFp32 ? 4 : loadedWidth(input));
    const moments = strategy === 'fsdp1' ? 2 * plan.trainable * (sharding.storesFp32 ? 4 : loadedWidth(input)) : 0;
    return Math.max(weights, moments);
  }
  if (strategy === 'zero3') return model.parameters * 2;
  const trained =
    plan.trainable *
    (values.method === 'full'
      ? loadedWidth(input)
      : ((values.lora ?? values.ia3)?.adapterDtype ?? 'fp32') === 'fp32'
        ? 4
        : 2);
  return Math.max(Math.min(trained, shardLimit(values.versions)), Math.min(largestState, plan.trainable * 4));
}
