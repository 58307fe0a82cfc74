import type { BareFile, FileClaim } from '../dialect.ts';

/** How a config of LLaMA-Factory is known when it is given alone. */
export const LLAMA_FACTORY_SIGN = 'stage or finetuning_type, with model_name_or_path, template or cutoff_len';

/** `stage` and `finetuning_type` are its own words; a config for chatting or exporting has no dataset to train on. */
export function claimLlamaFactoryFile({ path, values }: BareFile): FileClaim | undefined {
  const has = (...keys: readonly string[]): boolean => keys.some((key) => values.has(key));
  const own = has('finetuning_type') || (has('stage') && has('template', 'cutoff_len', 'do_train'));
  const alike = has('template') && has('cutoff_len', 'dataset_dir', 'lora_target', 'quantization_bit');
  if (!(own || alike) || !has('model_name_or_path', 'template', 'cutoff_len', 'dataset')) return undefined;
  if (has('export_dir')) {
    return {
      kind: 'unclear',
      what: 'a config of llamafactory-cli export',
      commands: [`llamafactory-cli train ${path}`],
    };
  }
  return { kind: 'command', argv: ['llamafactory-cli', 'train', path] };
}
