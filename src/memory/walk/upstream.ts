import type { Op } from '../../model/index.ts';

/** Fields of an op that name a value it reads. */
const READ = ['input', 'a', 'b', 'q', 'k', 'v', 'bias', 'gate', 'all', 'coefs', 'logits', 'keys', 'dt', 'x', 'c'];

function reads(op: Op): string[] {
  const fields = op as unknown as Readonly<Record<string, unknown>>;
  const names = READ.map((field) => fields[field]).filter((name): name is string => typeof name === 'string');
  return op.op === 'concatenate' ? [...op.inputs] : names;
}

function binds(op: Op): string[] {
  if (op.op === 'split') return op.outputs.map(({ name }) => name);
  if (op.op === 'rotary') return [op.q, op.k];
  return 'output' in op && op.output !== undefined ? [op.output] : [];
}

/** The ops by which the values named in `wanted` come about, those inside calls included. */
export function upstreamOf(ops: readonly Op[], wanted: readonly string[]): ReadonlySet<Op> {
  const found = new Set<Op>();
  walk(ops, new Set(wanted), found);
  return found;
}

/** Goes backwards; `needed` becomes what has to be there before the first op. */
function walk(ops: readonly Op[], needed: Set<string>, found: Set<Op>): void {
  for (const op of ops.toReversed()) {
    if (op.op === 'call') {
      const inner = new Set<string>();
      for (const [name, outer] of Object.entries(op.results)) if (needed.delete(outer)) inner.add(name);
      if (inner.size === 0) continue;
      walk(op.ops, inner, found);
      for (const [outer, name] of Object.entries(op.arguments)) if (inner.has(name)) needed.add(outer);
      continue;
    }
    const bound = binds(op);
    if (!bound.some((name) => needed.has(name))) continue;
    for (const name of bound) needed.delete(name);
    for (const name of reads(op)) needed.add(name);
    found.add(op);
  }
}
