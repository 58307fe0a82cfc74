import {
  canWriteTo,
  hasInEnvironment,
  isGone,
  listPids,
  type ProcessStat,
  readAllStats,
  readOpenPipe,
  readStat,
} from './proc.ts';
import { strangersAmong } from './strangers.ts';

/** Few enough that a pid is not given away and taken again in between. */
const LOOKS_AS_STRANGER = 10;

/**
 * The processes descended from one child. A pid counts only with its start time, so that a reused number is never taken for
 * ours. What the tree has once held stays known: workers live on under another parent when their launcher dies.
 */
export interface ProcessTree {
  /** Looks again. Cheap enough for once a second; a process that lives and forks between two looks is found by its session. */
  readonly refresh: () => void;
  /** Looks again and returns those that still run, parents before their children. */
  readonly live: () => readonly ProcessStat[];
  /**
   * Finds who still holds the pipes that were made for the leader. They can only have been inherited from it: so a process
   * that left its parent and its session between two looks is found after all.
   */
  readonly findPipeHolders: () => void;
  /** Finds processes by an assignment that only this tree has inherited (`SNUG_ATTEMPT=…`). */
  readonly findMarked: (assignment: string) => void;
  /** Takes in processes that somebody else has seen in this tree; those that are gone, or whose number is another's now, are not. */
  readonly adopt: (members: readonly { readonly pid: number; readonly startTicks: number }[]) => void;
  /** Every pid ever seen. */
  readonly seen: () => readonly number[];
}

/**
 * `ownSession`: the leader was started as the head of a session of its own, so all of that session descends from it. `startTicks`
 * of the leader, where it may have ended by now and another process have its number.
 */
export function createProcessTree(leader: number, ownSession: boolean, startTicks?: number): ProcessTree {
  const startOf = new Map<number, number>();
  const found = readStat(leader);
  const first = startTicks === undefined || found?.startTicks === startTicks ? found : undefined;
  // A session outlives its leader, and its number is not given away before.
  const reused = found !== undefined && first === undefined;
  const sessions = new Set<number>(ownSession && !reused ? [leader] : []);
  const everSeen = new Set<number>([leader]);
  let members: ProcessStat[] = [];
  /**
   * Processes that are none of ours, and for how many looks they are not looked at: a stranger stays one, until another has its pid. A
   * large server has thousands of them.
   */
  let strangers = new Map<number, number>();

  const isKnown = (stat: ProcessStat): boolean => startOf.get(stat.pid) === stat.startTicks;
  const adopt = (stat: ProcessStat): void => {
    startOf.set(stat.pid, stat.startTicks);
    everSeen.add(stat.pid);
    if (stat.session !== stat.pid || sessions.has(stat.pid)) return;
    sessions.add(stat.pid);
    strangers.clear();
  };
  /** What was found in another way than by its parent or session may be the parent of somebody. */
  const adoptFromOutside = (stat: ProcessStat): void => {
    adopt(stat);
    strangers.clear();
  };

  const refresh = (): void => {
    const pids = listPids();
    const skipped = pids.filter((pid) => (strangers.get(pid) ?? 0) > 0);
    const all = pids.flatMap((pid) => (strangers.get(pid) ? [] : (readStat(pid) ?? [])));
    const childrenOf = new Map<number, ProcessStat[]>();
    for (const stat of all) {
      const siblings = childrenOf.get(stat.parent);
      if (siblings) siblings.push(stat);
      else childrenOf.set(stat.parent, [stat]);
    }
    const present = new Set(all.map((stat) => stat.session));
    // A session without members is over; its number may come back as a stranger's.
    for (const session of sessions) if (!present.has(session)) sessions.delete(session);
    for (const stat of all) {
      if (sessions.has(stat.pid) && startOf.has(stat.pid) && !isKnown(stat)) sessions.delete(stat.pid);
    }
    const reached = new Set<ProcessStat>();
    const queue = all.filter((stat) => isKnown(stat) || sessions.has(stat.session));
    for (let stat = queue.shift(); stat; stat = queue.shift()) {
      if (reached.has(stat)) continue;
      const hadSession = sessions.has(stat.session);
      reached.add(stat);
      adopt(stat);
      queue.push(...(childrenOf.get(stat.pid) ?? []));
      if (!hadSession && sessions.has(stat.session)) queue.push(...all.filter((one) => one.session === stat.session));
    }
    members = parentsFirst([...reached]);
    strangers = new Map(skipped.map((pid) => [pid, (strangers.get(pid) ?? 1) - 1]));
    for (const stat of strangersAmong(all, reached, strangers)) {
      strangers.set(stat.pid, 1 + (stat.pid % LOOKS_AS_STRANGER));
    }
  };

  const pipes = new Set([1, 2].flatMap((fd) => readOpenPipe(leader, fd) ?? []));
  if (first) {
    adopt(first);
    members = [first];
  }
  return {
    refresh,
    live: () => {
      refresh();
      return members.filter((stat) => !isGone(stat));
    },
    findPipeHolders: () => {
      for (const stat of readAllStats()) {
        if (stat.pid !== process.pid && !isKnown(stat) && canWriteTo(stat.pid, pipes)) adoptFromOutside(stat);
      }
    },
    findMarked: (assignment) => {
      for (const stat of readAllStats()) {
        if (stat.pid !== process.pid && !isKnown(stat) && hasInEnvironment(stat.pid, assignment))
          adoptFromOutside(stat);
      }
    },
    adopt: (members) => {
      for (const { pid, startTicks } of members) {
        const stat = readStat(pid);
        if (stat?.startTicks === startTicks) adoptFromOutside(stat);
      }
    },
    seen: () => [...everSeen],
  };
}

function parentsFirst(stats: readonly ProcessStat[]): ProcessStat[] {
  const byPid = new Map(stats.map((stat) => [stat.pid, stat]));
  const depthOf = (stat: ProcessStat): number => {
    let depth = 0;
    for (let up = byPid.get(stat.parent); up && depth < stats.length; up = byPid.get(up.parent)) depth++;
    return depth;
  };
  return stats
    .map((stat) => ({ stat, depth: depthOf(stat) }))
    .sort((left, right) => left.depth - right.depth || left.stat.startTicks - right.stat.startTicks)
    .map(({ stat }) => stat);
}

/** Sends a signal to exactly this process; `false` when it is gone or another has its number. */
export function signalProcess(target: ProcessStat, signal: NodeJS.Signals): boolean {
  if (readStat(target.pid)?.startTicks !== target.startTicks) return false;
  try {
    return process.kill(target.pid, signal);
  } catch {
    return false;
  }
}
