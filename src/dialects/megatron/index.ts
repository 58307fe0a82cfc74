// https://docs.nvidia.com/megatron-core/developer-guide/latest/
import type { Dialect } from '../dialect.ts';
import { startOfMegatron } from './detect.ts';
import { MEGATRON_EXAMPLES } from './example.ts';
import { readMegatron } from './read.ts';

/** Megatron-LM's scripts by their flags. */
export const megatron: Dialect = {
  id: 'megatron',
  kind: 'trainer',
  title: 'Megatron-LM',
  docs: 'https://docs.nvidia.com/megatron-core/developer-guide/latest/',
  examples: MEGATRON_EXAMPLES,
  readOnly: 'what its step holds is not modelled, so there is nothing to fit',
  detect: startOfMegatron,
  read: readMegatron,
};
