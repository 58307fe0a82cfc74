import type { Origin } from '../spec/index.ts';

/** Version of a package that the trainer's Python has, or will get, and where that was read. */
export interface FoundVersion {
  readonly version: string;
  /** `/opt/env/lib/python3.12/site-packages`, `uv.lock:12`. */
  readonly place: string;
}

/** By package name as its metadata spells it, lower case with `-`. */
export type FoundVersions = Readonly<Record<string, FoundVersion | undefined>>;

/** One value that a default has had from `since` on. */
export interface SinceRow<T> {
  /** The first version with it; `0`: before all others here. */
  readonly since: string;
  readonly value: T;
}

/** Whether `version` is `since` or newer; what is no number counts as newest. */
export function isSince(version: string, since: string): boolean {
  const [a, b] = [partsOf(version), partsOf(since)];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

const partsOf = (version: string): readonly number[] => {
  const numbers = /^v?(\d+(?:\.\d+)*)/.exec(version.trim())?.[1];
  return numbers === undefined ? [Number.POSITIVE_INFINITY] : numbers.split('.').map(Number);
};

/** The value that holds in `version`: the last row that is not newer. Rows stand oldest first. */
export function valueIn<T>(rows: readonly [SinceRow<T>, ...SinceRow<T>[]], version: string): T {
  return (rows.findLast(({ since }) => isSince(version, since)) ?? rows[0]).value;
}

/** `4.57.1` of `transformers` as an origin: the version in use, else the newest one that is known here. */
export const defaultOf = (
  tool: string,
  versions: FoundVersions | undefined,
  newest: string,
): Extract<Origin, { kind: 'default' }> => ({ kind: 'default', tool, version: versions?.[tool]?.version ?? newest });
