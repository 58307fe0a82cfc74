/** A share as text, 9 characters wide. */
export const percent = (value: number): string => `${(value * 100).toFixed(2)} %`.padStart(9);

const HEAD = ['n', 'median', 'mean', 'p95', 'max', 'under>3', 'refused'];

/** Head line over lines of `errorLine`. */
export const errorHead = (nameWidth = 22): string =>
  [
    ' '.repeat(nameWidth),
    HEAD[0]!.padStart(4),
    ...HEAD.slice(1, 6).map((word) => word.padStart(9)),
    HEAD[6]!.padStart(7),
  ].join(' ');

/** One line: how far estimates lie from peaks. `errors`: estimate ÷ peak − 1, of those estimated; sizes are absolute, p95 by nearest rank. */
export function errorLine(name: string, errors: readonly number[], refusals: number, nameWidth = 22): string {
  const count = String(errors.length + refusals).padStart(4);
  if (errors.length === 0) return `${name.padEnd(nameWidth)} ${count}  all refused`;
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const at = (share: number): number => sizes[Math.min(sizes.length - 1, Math.ceil(share * sizes.length) - 1)]!;
  const mean = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  const under = errors.filter((error) => error < -0.03).length / errors.length;
  const figures = [at(0.5), mean, at(0.95), sizes.at(-1)!, under].map(percent);
  return [name.padEnd(nameWidth), count, ...figures, String(refusals).padStart(7)].join(' ');
}

/** Members by key, in order of first appearance. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
