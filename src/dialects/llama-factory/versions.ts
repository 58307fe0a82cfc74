import type { Origin } from '../../spec/index.ts';

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
