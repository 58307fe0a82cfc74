import type { Origin } from '../../spec/index.ts';
import { type FoundVersions, isSince } from '../versions.ts';

/** What LLaMA-Factory takes where the launch says nothing. */
export interface LlamaFactoryVersion {
  readonly origin: Origin;
  readonly cutoffLen: number;
  readonly loraRank: number;
  /** `lora_alpha` is this many times the rank. */
  readonly loraAlphaFactor: number;
}

const version = (name: string, cutoffLen: number): LlamaFactoryVersion => ({
  origin: { kind: 'default', tool: 'llamafactory', version: name },
  cutoffLen,
  loraRank: 8,
  loraAlphaFactor: 2,
});

/** Source: llamafactory/hparams/*.py of 0.9.5. */
export const LLAMA_FACTORY_0_9 = version('0.9.5', 2048);

/** The last with `src/train_bash.py`; `cutoff_len` was 1024 before 0.9.2. */
export const LLAMA_FACTORY_0_7 = version('0.7', 1024);

/** Defaults of the LLaMA-Factory that the launch uses; of the newest known where that cannot be found. */
export function llamaFactoryIn(versions: FoundVersions | undefined): LlamaFactoryVersion {
  const found = versions?.llamafactory?.version;
  if (found === undefined) return LLAMA_FACTORY_0_9;
  return version(found, isSince(found, '0.9.2') ? 2048 : 1024);
}
