import type { FloatDType } from '../../core/index.ts';
import type { LossImpl, Origin } from '../../spec/index.ts';
import { type TransformersVersion, transformersIn } from '../hf-trainer/versions.ts';
import { defaultOf, type FoundVersions, isSince, type SinceRow, valueIn } from '../versions.ts';

/** What a TRL version takes where the launch says nothing. */
export interface TrlVersion {
  readonly origin: Origin;
  readonly dtype: FloatDType | 'auto';
  readonly gradientCheckpointing: boolean;
  /** Whether a missing `use_reentrant` becomes false. */
  readonly reentrantOff: boolean;
  /** Loss of the SFT trainer without `loss_type` and Liger. */
  readonly sftLoss: LossImpl;
  /** Dtype of adapters on a quantised base; before 0.26 PEFT's k-bit preparation kept everything in fp32. */
  readonly quantizedAdapterDtype: FloatDType;
  readonly kbitPreparation: boolean;
  /** bf16 autocast unless fp16 is on. */
  readonly bf16UnlessFp16: boolean;
  /** The transformers beside it; undefined: the newest known. */
  readonly transformers?: TransformersVersion;
}

/** TRL 1.13: trl/trainer/{base,model,sft}_config.py, sft_trainer.py. */
export const TRL_1_13: TrlVersion = {
  origin: { kind: 'default', tool: 'trl', version: '1.13' },
  dtype: 'fp32',
  gradientCheckpointing: true,
  reentrantOff: true,
  sftLoss: 'chunked',
  quantizedAdapterDtype: 'bf16',
  kbitPreparation: false,
  bf16UnlessFp16: true,
};

/** TRL 0.19, the last that takes `max_seq_length` without a warning; what recipes of that time mean by leaving a key out. */
export const TRL_0_19: TrlVersion = {
  origin: { kind: 'default', tool: 'trl', version: '0.19' },
  dtype: 'auto',
  gradientCheckpointing: false,
  reentrantOff: false,
  sftLoss: 'full',
  quantizedAdapterDtype: 'fp32',
  kbitPreparation: true,
  bf16UnlessFp16: true,
};

type Rows<T> = readonly [SinceRow<T>, ...SinceRow<T>[]];

/** Defaults that moved, with the release that moved them. Source: TRL's trainer/*_config.py and model_config.py by tag. */
const CHECKPOINTING: Rows<boolean> = [
  { since: '0', value: false },
  { since: '0.22', value: true },
];
const REENTRANT_OFF: Rows<boolean> = [
  { since: '0', value: false },
  { since: '0.28', value: true },
];
const SFT_LOSS: Rows<LossImpl> = [
  { since: '0', value: 'full' },
  { since: '1.7', value: 'chunked' },
];
const QUANTIZED_ADAPTERS: Rows<FloatDType> = [
  { since: '0', value: 'fp32' },
  { since: '0.26', value: 'bf16' },
];
const KBIT_PREPARATION: Rows<boolean> = [
  { since: '0', value: true },
  { since: '0.27', value: false },
];
const BF16_UNLESS_FP16: Rows<boolean> = [
  { since: '0', value: false },
  { since: '0.19', value: true },
];

/** Defaults of the TRL that the launch uses; of the newest known where that cannot be found. */
export function trlIn(versions: FoundVersions | undefined): TrlVersion {
  if (!versions?.trl) return TRL_1_13;
  const origin = defaultOf('trl', versions, '1.13');
  const { version } = origin;
  const transformers = transformersIn(versions);
  return {
    origin,
    // Before 0.27 the dtype was left to from_pretrained.
    dtype: isSince(version, '0.27') ? 'fp32' : transformers.dtype,
    gradientCheckpointing: valueIn(CHECKPOINTING, version),
    reentrantOff: valueIn(REENTRANT_OFF, version) || !transformers.useReentrant,
    sftLoss: valueIn(SFT_LOSS, version),
    quantizedAdapterDtype: valueIn(QUANTIZED_ADAPTERS, version),
    kbitPreparation: valueIn(KBIT_PREPARATION, version),
    bf16UnlessFp16: valueIn(BF16_UNLESS_FP16, version),
    transformers,
  };
}
