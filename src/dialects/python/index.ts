import { ok } from '../../core/index.ts';
import type { Dialect } from '../dialect.ts';
import { pythonInvocation } from './invocation.ts';
import { processesOf, readPython } from './read.ts';

/** `python train.py`, `python -m package.train`, `./train.py`: no launcher at all. */
export const python: Dialect = {
  id: 'python',
  kind: 'launcher',
  title: 'python',
  docs: 'https://docs.python.org/3/using/cmdline.html',
  detect(position) {
    if (position.target || position.engine) return undefined;
    const invocation = pythonInvocation(position);
    if (!invocation) return undefined;
    return { from: position.index, to: invocation.target?.index ?? position.argv.length };
  },
  read: readPython,
};

/** Any other program, asked last: it is started as it is, and only its own command line can say more. */
export const program: Dialect = {
  id: 'python',
  kind: 'launcher',
  title: 'a program',
  docs: 'https://docs.python.org/3/using/cmdline.html',
  detect({ argv, index, target, engine, above }) {
    const token = argv[index];
    if (target || engine || token === undefined || token.startsWith('-')) return undefined;
    // A wrapper that did not look through hands nothing on; its leftovers are no program.
    return above.at(-1)?.reading.handOn || above.length === 0 ? { from: index, to: index } : undefined;
  },
  read({ from }, position) {
    const target = { form: 'program', name: position.argv[from]!, index: from, argsFrom: from + 1 } as const;
    const { value, diagnostics } = processesOf(position);
    return ok({ spec: {}, detail: undefined, processes: value, diagnostics, handOn: { kind: 'target', target } });
  },
};

export { pythonInvocation } from './invocation.ts';
