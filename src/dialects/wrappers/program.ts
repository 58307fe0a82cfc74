import { ok } from '../../core/index.ts';
import type { Dialect, Processes } from '../dialect.ts';
import { processesOf } from '../python/index.ts';

/** Any other program, asked last: nobody here knows what it starts, and only its own arguments can say more. */
export const program: Dialect = {
  id: 'program',
  kind: 'wrapper',
  title: 'a program',
  docs: 'https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html',
  detect({ argv, index, target, engine, above }) {
    const token = argv[index];
    if (target || engine || token === undefined || token.startsWith('-')) return undefined;
    // A wrapper that was not looked through hands nothing on; its leftovers are no program.
    return above.length === 0 || above.at(-1)?.reading.handOn ? { from: index, to: index } : undefined;
  },
  read({ from }, position) {
    const name = position.argv[from]!;
    const { value, diagnostics } = processesOf(position);
    // Ranks that somebody starts by hand count; one process without a word does not mean that it stays one.
    const processes: Processes = value.distributed ? value : unknownProcesses(from);
    return ok({
      spec: {},
      detail: undefined,
      label: '',
      processes,
      diagnostics,
      handOn: { kind: 'target', target: { form: 'program', name, index: from, argsFrom: from + 1 } },
    });
  },
};

/** What stands at `index` may start any number of processes. */
export const unknownProcesses = (index: number): Processes => ({
  nodes: null,
  perNode: null,
  distributed: true,
  origin: { kind: 'argv', index },
});
