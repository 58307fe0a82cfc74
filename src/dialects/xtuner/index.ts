// https://xtuner.readthedocs.io/en/latest/
import type { Dialect } from '../dialect.ts';
import { startOfXtuner } from './detect.ts';
import { XTUNER_EXAMPLES } from './example.ts';
import { readXtuner } from './read.ts';
import { readXtunerV1 } from './v1.ts';

/** XTuner: configs that are Python programs, of which only literal assignments are read, and the flags of its newer trainer. */
export const xtuner: Dialect = {
  id: 'xtuner',
  kind: 'trainer',
  title: 'XTuner',
  docs: 'https://xtuner.readthedocs.io/en/latest/',
  examples: XTUNER_EXAMPLES,
  readOnly: 'its config is a Python program, which is read as text and never run',
  detect: (position) => startOfXtuner(position)?.claim,
  read(_, position, context) {
    const start = startOfXtuner(position)!;
    return start.form === 'v1' ? readXtunerV1(start, position) : readXtuner(start, position, context);
  },
};
