import type { Origin } from '../../spec/index.ts';

/** What ms-swift takes where the launch says nothing, in the three grammars that commands are written in. */
export interface SwiftVersion {
  readonly major: 2 | 3 | 4;
  readonly origin: Origin;
  /** null: the model's own limit. */
  readonly maxLength: number | null;
  /** Release 2 names PEFT's list for the architecture `DEFAULT`. */
  readonly targets: 'all-linear' | 'default';
  readonly optim: string;
  /** Rows of the data set aside for evaluation. */
  readonly splitDatasetRatio: number;
}

const version = (
  major: SwiftVersion['major'],
  name: string,
  rest: Omit<SwiftVersion, 'major' | 'origin'>,
): SwiftVersion => ({
  major,
  origin: { kind: 'default', tool: 'ms-swift', version: name },
  ...rest,
});

const LATER = { maxLength: null, targets: 'all-linear', optim: 'adamw_torch_fused', splitDatasetRatio: 0 } as const;

/** Source: swift/llm/utils/argument.py of 2.6.1, swift/llm/argument of 3.12.0, swift/arguments of 4.6.0. */
export const SWIFT_2 = version(2, '2.6', {
  maxLength: 2048,
  targets: 'default',
  optim: 'adamw_torch',
  splitDatasetRatio: 0.01,
});
export const SWIFT_3 = version(3, '3.12', LATER);
export const SWIFT_4 = version(4, '4.6', LATER);

const OF_2 = [
  'sft_type',
  'model_id_or_path',
  'quantization_bit',
  'use_flash_attn',
  'lora_target_modules',
  'template_type',
  'lora_dropout_p',
  'batch_size',
];

/** The release whose words a launch uses; without any of them the newest. */
export function versionOf(has: (key: string) => boolean): SwiftVersion {
  if (OF_2.some(has) || (has('model_type') && !has('model'))) return SWIFT_2;
  return has('train_type') ? SWIFT_3 : SWIFT_4;
}
