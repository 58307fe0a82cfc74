import type { BareFile, FileClaim } from '../dialect.ts';

/** How a config of LLM Foundry is known when it is given alone. */
export const FOUNDRY_SIGN = 'train_loader with device_train_microbatch_size or global_train_batch_size';

/** Its own command starts one process; under composer in command mode it takes every GPU. */
export function claimFoundryFile({ path, values }: BareFile): FileClaim | undefined {
  if (!values.has('train_loader') || !values.has('model')) return undefined;
  if (!values.has('device_train_microbatch_size') && !values.has('global_train_batch_size')) return undefined;
  return { kind: 'command', argv: ['composer', '-c', 'llmfoundry', 'train', path] };
}
