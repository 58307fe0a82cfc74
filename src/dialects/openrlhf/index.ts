// https://openrlhf.readthedocs.io/en/latest/non_rl.html
import type { Dialect } from '../dialect.ts';
import { startOfOpenRlhf } from './detect.ts';
import { OPENRLHF_EXAMPLES } from './example.ts';
import { type OpenRlhfDetail, readOpenRlhf } from './read.ts';
import { writeOpenRlhf } from './write.ts';

/** OpenRLHF's training modules, flags with dots (since 0.11) and without. */
export const openRlhf: Dialect<OpenRlhfDetail> = {
  id: 'openrlhf',
  kind: 'trainer',
  title: 'OpenRLHF',
  docs: 'https://openrlhf.readthedocs.io/en/latest/non_rl.html',
  examples: OPENRLHF_EXAMPLES,
  detect: (position) => startOfOpenRlhf(position)?.claim,
  read: (_, position) => readOpenRlhf(startOfOpenRlhf(position)!, position),
  write: writeOpenRlhf,
};
