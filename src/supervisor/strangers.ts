import type { ProcessStat } from './proc.ts';

/**
 * Those of `all` that are none of ours: reached neither from our tree nor from anybody who may belong to it. `known`: pids of
 * strangers. Processes are listed one after the other: a parent that was born in the meantime is missing, and whose parent is missing
 * may be ours.
 */
export function strangersAmong(
  all: readonly ProcessStat[],
  reached: ReadonlySet<ProcessStat>,
  known: ReadonlyMap<number, unknown>,
): ProcessStat[] {
  const byPid = new Map(all.map((stat) => [stat.pid, stat]));
  const verdicts = new Map<number, boolean>();
  const isStranger = (pid: number): boolean => {
    if (pid === 0 || known.has(pid)) return true;
    const before = verdicts.get(pid);
    if (before !== undefined) return before;
    const stat = byPid.get(pid);
    // A number that was given away in between could make a circle.
    verdicts.set(pid, false);
    const verdict = stat !== undefined && !reached.has(stat) && isStranger(stat.parent);
    verdicts.set(pid, verdict);
    return verdict;
  };
  return all.filter(({ pid }) => isStranger(pid));
}
