import type { Dialect } from '../dialect.ts';
import { pythonInvocation } from './invocation.ts';
import { readPython } from './read.ts';

/** `python train.py`, `python -m package.train`, `./train.py`: no launcher at all. */
export const python: Dialect = {
  id: 'python',
  kind: 'launcher',
  title: 'python',
  docs: 'https://docs.python.org/3/using/cmdline.html',
  examples: [{ command: 'python train.py --output_dir out' }],
  detect(position) {
    if (position.target || position.engine) return undefined;
    const invocation = pythonInvocation(position);
    if (!invocation) return undefined;
    return { from: position.index, to: invocation.target?.index ?? position.argv.length };
  },
  read: readPython,
};

export { pythonInvocation } from './invocation.ts';
export { processesOf } from './read.ts';
