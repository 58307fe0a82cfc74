import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const PAGE = 4096;

/**
 * Proportional set size: pages that forked workers share with their parent count once. The kernel walks the page tables for it,
 * so the caller spaces the calls by what they cost. Where it cannot be read, the resident set (shared pages counted again).
 */
export async function readRam(pid: number, root = ''): Promise<number> {
  try {
    const rollup = await readFile(`${root}/proc/${pid}/smaps_rollup`, 'latin1');
    const pss = /^Pss:\s+(\d+) kB/m.exec(rollup);
    if (pss) return Number(pss[1]) * 1024;
  } catch {
    // Another user's process, an old kernel, or one that has just ended.
  }
  try {
    return Number((await readFile(`${root}/proc/${pid}/statm`, 'latin1')).split(' ')[1]) * PAGE;
  } catch {
    return 0;
  }
}

/** What the kernel counts along for one process, bytes. */
export interface ProcessMemory {
  readonly residentBytes: number;
  /** Pages that no file stands behind, private or shared with a fork. */
  readonly anonymousBytes: number;
  /** The highest `residentBytes` since the process began. */
  readonly highBytes: number;
  /** Its pages that were put out to swap. */
  readonly swapBytes: number;
}

/** Undefined: it is gone, a kernel thread, or a zombie, which has no memory left. `root` is put before the path (for tests). */
export function readProcessMemory(pid: number, root = ''): ProcessMemory | undefined {
  const status = read(`${root}/proc/${pid}/status`);
  const field = (name: string): number | undefined => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status ?? '');
    return match ? Number(match[1]) * 1024 : undefined;
  };
  const residentBytes = field('VmRSS');
  if (residentBytes === undefined) return undefined;
  // RssAnon came with Linux 4.5.
  return {
    residentBytes,
    anonymousBytes: field('RssAnon') ?? residentBytes,
    highBytes: field('VmHWM') ?? residentBytes,
    swapBytes: field('VmSwap') ?? 0,
  };
}

/** What the memory cgroup around us and the machine count. */
export interface OomCounters {
  readonly cgroupKills: number;
  /** Smallest limit from our cgroup up to the root; null: none is set; undefined: not readable. */
  readonly cgroupLimitBytes: number | null | undefined;
  readonly hostKills: number | undefined;
}

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
};
const count = (text: string | undefined, key: string): number | undefined => {
  const match = text === undefined ? null : new RegExp(`^${key} (\\d+)$`, 'm').exec(text);
  return match ? Number(match[1]) : undefined;
};

interface CgroupFolder {
  readonly version: 1 | 2;
  readonly folder: string;
  readonly mount: string;
}

/** Folders of the memory controller for a process; inside a container the mount shows only part of the path. */
function memoryCgroups(root: string, cgroup: string, mountinfo: string): CgroupFolder[] {
  const mounts = mountinfo.split('\n').flatMap((line) => {
    const [left, right] = line.split(' - ');
    const [, , , part, mount] = left?.split(' ') ?? [];
    const [type, , options] = right?.split(' ') ?? [];
    const isMemory = type === 'cgroup2' || (type === 'cgroup' && options?.split(',').includes('memory'));
    return part && mount && isMemory
      ? [{ part, mount: join(root, mount), version: type === 'cgroup2' ? (2 as const) : (1 as const) }]
      : [];
  });
  return cgroup.split('\n').flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) return [];
    const version = controllers === '' ? 2 : controllers.split(',').includes('memory') ? 1 : undefined;
    return mounts
      .filter((mount) => mount.version === version)
      .flatMap(({ part, mount, version: found }) => {
        const inside = part !== '/' && path.startsWith(part) ? path.slice(part.length) : path;
        return [join(mount, inside), mount].map((folder) => ({ version: found, folder, mount }));
      });
  });
}

const KILLS = { 1: 'memory.oom_control', 2: 'memory.events' } as const;
const LIMIT = { 1: 'memory.limit_in_bytes', 2: 'memory.max' } as const;
/** Version 1 writes "none" as the largest multiple of a page. */
const NO_LIMIT = 2 ** 60;

const readKills = ({ version, folder }: CgroupFolder): number | undefined =>
  count(read(join(folder, KILLS[version])), 'oom_kill');

function smallestLimit({ version, folder, mount }: CgroupFolder): number | null | undefined {
  let smallest: number | null | undefined;
  for (let at = folder; at.startsWith(mount); at = dirname(at)) {
    const text = read(join(at, LIMIT[version]))?.trim();
    if (text === undefined) continue;
    const limit = Number(text);
    smallest ??= null;
    if (text !== 'max' && limit < NO_LIMIT) smallest = Math.min(smallest ?? limit, limit);
    if (at === dirname(at)) break;
  }
  return smallest;
}

/** Reads the counters around us. On systems without /proc nothing is known. `root` is put before every path (for tests). */
export function readOomCounters(root = ''): OomCounters {
  const folders = memoryCgroups(
    root,
    read(`${root}/proc/self/cgroup`) ?? '',
    read(`${root}/proc/self/mountinfo`) ?? '',
  );
  const counted = folders.map(readKills).find((kills) => kills !== undefined);
  const limited = folders.map(smallestLimit).find((limit) => limit !== undefined);
  return {
    cgroupKills: counted ?? 0,
    cgroupLimitBytes: limited,
    hostKills: count(read(`${root}/proc/vmstat`), 'oom_kill'),
  };
}
