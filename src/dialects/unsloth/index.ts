// https://github.com/unslothai/unsloth/blob/main/unsloth-cli.py
import type { Dialect } from '../dialect.ts';
import { detectUnsloth } from './detect.ts';
import { readUnsloth, type UnslothDetail } from './read.ts';
import { writeUnsloth } from './write.ts';

/** Unsloth: the flags of unsloth-cli.py, and the literal arguments of scripts made from its notebooks. */
export const unsloth: Dialect<UnslothDetail> = {
  id: 'unsloth',
  kind: 'trainer',
  title: 'Unsloth',
  docs: 'https://github.com/unslothai/unsloth/blob/main/unsloth-cli.py',
  examples: [
    {
      command:
        'python unsloth-cli.py --model_name unsloth/llama-3-8b --per_device_train_batch_size 4 --max_seq_length 4096',
    },
  ],
  detect: detectUnsloth,
  read: readUnsloth,
  write: writeUnsloth,
};
