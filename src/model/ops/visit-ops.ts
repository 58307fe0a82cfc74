import type { Op } from './op.ts';

/** Calls `visit` for every op with the path of the module it stands in, calls entered. */
export function visitOps(ops: readonly Op[], path: string, visit: (op: Op, path: string) => void): void {
  for (const op of ops) {
    if (op.op === 'call') visitOps(op.ops, joinPath(path, op.name), visit);
    else {
      if (op.op === 'disentangled') {
        for (const part of [op.query, op.key, op.value, op.positionKey, op.positionQuery]) if (part) visit(part, path);
      }
      visit(op, path);
    }
  }
}

export const joinPath = (path: string, name: string): string =>
  path === '' ? name : name === '' ? path : `${path}.${name}`;
