import { closeSync, openSync, read as readAsync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readProcFile } from './proc.ts';

const PAGE = 4096;

/** More than `smaps_rollup` or `statm` has. */
const SMALL = 2048;

/** One file of /proc read by another thread: what the kernel has to count for it may take long. Undefined: it cannot be read. */
function readInThread(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let fd: number;
    try {
      fd = openSync(path, 'r');
    } catch {
      resolve(undefined);
      return;
    }
    const bytes = Buffer.allocUnsafe(SMALL);
    readAsync(fd, bytes, 0, SMALL, 0, (failure, length) => {
      closeSync(fd);
      resolve(failure ? undefined : bytes.toString('latin1', 0, length));
    });
  });
}

/**
 * Proportional set size: pages that forked workers share with their parent count once. The kernel walks the page tables for it,
 * so the caller spaces the calls by what they cost. Where it cannot be read (another user's process, an old kernel, one that has
 * just ended), the resident set (shared pages counted again).
 */
export async function readRam(pid: number, root = ''): Promise<number> {
  const rollup = await readInThread(`${root}/proc/${pid}/smaps_rollup`);
  const pss = /^Pss:\s+(\d+) kB/m.exec(rollup ?? '');
  if (pss) return Number(pss[1]) * 1024;
  const statm = readProcFile(`${root}/proc/${pid}/statm`);
  return statm === undefined ? 0 : Number(statm.split(' ', 2)[1]) * PAGE;
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
  const status = `\n${readProcFile(`${root}/proc/${pid}/status`) ?? ''}`;
  /** `VmRSS:<tab>    1234 kB`; no name of a process can hold a line end. */
  const field = (name: string): number | undefined => {
    const at = status.indexOf(`\n${name}:`);
    return at < 0 ? undefined : Number.parseInt(status.slice(at + name.length + 2, at + name.length + 40), 10) * 1024;
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
