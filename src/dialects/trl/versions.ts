import type { FloatDType } from '../../core/index.ts';
import type { LossImpl, Origin } from '../../spec/index.ts';

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
};
