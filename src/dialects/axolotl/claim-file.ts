import type { BareFile, FileClaim } from '../dialect.ts';

/** How a config of axolotl is known when it is given alone. */
export const AXOLOTL_SIGN = 'base_model with datasets, micro_batch_size, sequence_len or adapter';

const COMPANIONS = ['datasets', 'pretraining_dataset', 'micro_batch_size', 'sequence_len', 'adapter', 'sample_packing'];

export function claimAxolotlFile({ path, values }: BareFile): FileClaim | undefined {
  if (path.endsWith('.json') || !values.has('base_model')) return undefined;
  return COMPANIONS.some((key) => values.has(key)) ? { kind: 'command', argv: ['axolotl', 'train', path] } : undefined;
}
