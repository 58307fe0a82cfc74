import type { BareFile, FileClaim, FileValue } from '../dialect.ts';

/** How a config of litgpt is known when it is given alone. */
export const LITGPT_SIGN = 'checkpoint_dir or model_name, with train: micro_batch_size or global_batch_size';

const isMap = (value: FileValue | undefined): value is { readonly [key: string]: FileValue } =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** A config does not name its command: LoRA has keys of its own, pretraining a model by name; the folder it writes to tells adapters. */
export function claimLitgptFile({ path, values }: BareFile): FileClaim | undefined {
  const train = values.get('train');
  const sizes = isMap(train) && ('micro_batch_size' in train || 'global_batch_size' in train);
  const pretrains = ['model_name', 'initial_checkpoint_dir', 'tokenizer_dir'].some((key) => values.has(key));
  if (!/\.ya?ml$/.test(path) || !sizes || !(values.has('checkpoint_dir') || pretrains)) return undefined;
  const adapter = /adapter(_v2|-v2)?/.exec(String(values.get('out_dir') ?? ''));
  const command = pretrains
    ? 'pretrain'
    : values.has('lora_r') || values.has('lora_query')
      ? 'finetune_lora'
      : adapter
        ? `finetune_adapter${adapter[1] ? '_v2' : ''}`
        : 'finetune_full';
  return { kind: 'command', argv: ['litgpt', command, '--config', path] };
}
