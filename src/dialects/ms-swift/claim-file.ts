import type { BareFile, FileClaim } from '../dialect.ts';

/** How a config of ms-swift is known when it is given alone. */
export const SWIFT_SIGN = 'model with tuner_type, train_type, torch_dtype or attn_impl, and dataset';

/** A config does not name its command: `rlhf_type` tells the one, the others are taken for sft. */
export function claimSwiftFile({ path, values }: BareFile): FileClaim | undefined {
  const own = [
    'tuner_type',
    'train_type',
    'sft_type',
    'rlhf_type',
    'attn_impl',
    'split_dataset_ratio',
    'lora_rank',
    'quant_bits',
  ];
  const ours =
    (values.has('model') || values.has('model_id_or_path')) &&
    values.has('dataset') &&
    own.some((key) => values.has(key));
  if (!ours || values.has('finetuning_type') || values.has('stage') || values.has('command')) return undefined;
  return { kind: 'command', argv: ['swift', values.has('rlhf_type') ? 'rlhf' : 'sft', path] };
}
