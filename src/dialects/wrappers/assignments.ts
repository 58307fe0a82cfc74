import { ok } from '../../core/index.ts';
import type { Dialect, Position } from '../dialect.ts';

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/;

/** Variables in front of the command, `CUDA_VISIBLE_DEVICES=0 python train.py`; later ones of a name win. */
export const assignments: Dialect = {
  id: 'assignments',
  kind: 'wrapper',
  title: 'variables before the command',
  docs: 'https://www.gnu.org/software/bash/manual/html_node/Environment.html',
  detect(position) {
    // Only a shell understands them, and only in front of everything: `nohup A=1 x` would look for a program `A=1`.
    const before = position.above.some(({ dialect }) => dialect.kind === 'wrapper' || dialect.kind === 'launcher');
    if (before || position.target || position.engine) return undefined;
    const { next } = readAssignments(position.argv, position.index);
    return next > position.index && next < position.argv.length ? { from: position.index, to: next } : undefined;
  },
  read(claim, position: Position) {
    const { variables } = readAssignments(position.argv, claim.from);
    // They are part of any command line and no program, so they have no name among the wrappers.
    return ok({ spec: {}, detail: undefined, label: '', env: variables, handOn: { kind: 'command', index: claim.to } });
  },
};

/** `NAME=value` tokens from `from` on, and the first token that is none. */
export function readAssignments(
  argv: readonly string[],
  from: number,
): { readonly variables: Readonly<Record<string, string>>; readonly next: number } {
  const variables: Record<string, string> = {};
  let next = from;
  for (; next < argv.length; next += 1) {
    const match = ASSIGNMENT.exec(argv[next]!);
    if (!match) break;
    variables[match[1]!] = match[2]!;
  }
  return { variables, next };
}
