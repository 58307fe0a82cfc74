import { posix } from 'node:path';
import type { Ports } from '../core/index.ts';

/** One memory cgroup this process lies in. */
export interface MemoryCgroup {
  /** Its folder, as this process sees it. */
  readonly folder: string;
  readonly version: 1 | 2;
  /** Hard limit, bytes; undefined: none. */
  readonly limitBytes: number | undefined;
  /** In use, without the page cache that is given up on demand, bytes. */
  readonly usedBytes: number;
}

/** v1 writes "no limit" as the largest page-aligned integer, 2^63 − 4096. */
const NO_LIMIT_BYTES = 2 ** 60;

interface Mount {
  readonly root: string;
  readonly point: string;
}

const readText = (ports: Ports, path: string): string | undefined => {
  const outcome = ports.files.readText(path);
  return outcome.ok ? outcome.value : undefined;
};

const readNumber = (ports: Ports, path: string): number | undefined => {
  const text = readText(ports, path)?.trim();
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
};

/** A `key value` line of memory.stat, memory.events or memory.oom_control. */
const readKeyed = (ports: Ports, path: string, key: string): number | undefined => {
  const match = new RegExp(`^${key} (\\d+)$`, 'm').exec(readText(ports, path) ?? '');
  return match ? Number(match[1]) : undefined;
};

/** mountinfo writes space, tab, newline and backslash as octal. */
const unescapeMount = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** Mounts of the hierarchy that holds the memory controller. Format: proc(5), /proc/pid/mountinfo. */
function memoryMounts(mountinfo: string, version: 1 | 2): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [before, after] = line.split(' - ');
    const [, , , root, point] = before!.split(' ');
    const [type, , superOptions] = (after ?? '').split(' ');
    const holdsMemory =
      version === 2 ? type === 'cgroup2' : type === 'cgroup' && (superOptions ?? '').split(',').includes('memory');
    return holdsMemory && root && point ? [{ root: unescapeMount(root), point: unescapeMount(point) }] : [];
  });
}

/** The path of this process in one hierarchy, from /proc/self/cgroup: `4:memory:/job/7` or `0::/job/7`. */
function ownPath(cgroups: string, version: 1 | 2): string | undefined {
  for (const line of cgroups.split('\n')) {
    const [, hierarchy, controllers, path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    const matches =
      version === 2 ? hierarchy === '0' && controllers === '' : controllers?.split(',').includes('memory');
    if (matches && path) return path;
  }
  return undefined;
}

/**
 * Folders from the process's own cgroup up to the mount point. In a container the mount shows a sub-tree (`root`), and
 * /proc/self/cgroup may name a path outside it (`/../…`, or the host's): then the mount point itself is the nearest
 * cgroup that can be seen.
 */
function chainOf(path: string, { root, point }: Mount): string[] {
  const relative = posix.relative(root, path);
  const own = relative.startsWith('..') || path.includes('/..') ? point : posix.join(point, relative);
  const chain = [own];
  while (chain.at(-1) !== point && chain.at(-1) !== '/') chain.push(posix.dirname(chain.at(-1)!));
  return chain;
}

function readLimit(ports: Ports, folder: string, version: 1 | 2): number | undefined {
  const limits =
    version === 2
      ? // Above memory.high the kernel throttles a process to a crawl: for a run that is the end as well.
        [readNumber(ports, `${folder}/memory.max`), readNumber(ports, `${folder}/memory.high`)]
      : // hierarchical_memory_limit also knows parents that a container cannot see.
        [
          readNumber(ports, `${folder}/memory.limit_in_bytes`),
          readKeyed(ports, `${folder}/memory.stat`, 'hierarchical_memory_limit'),
        ];
  const real = limits.filter((limit) => limit !== undefined && limit < NO_LIMIT_BYTES) as number[];
  return real.length > 0 ? Math.min(...real) : undefined;
}

function readUsed(ports: Ports, folder: string, version: 1 | 2): number {
  const [usage, caches] =
    version === 2
      ? ['memory.current', ['inactive_file']]
      : ['memory.usage_in_bytes', ['total_inactive_file', 'inactive_file']];
  const used = readNumber(ports, `${folder}/${usage}`) ?? 0;
  const cache = caches
    .map((key) => readKeyed(ports, `${folder}/memory.stat`, key))
    .find((bytes) => bytes !== undefined);
  return Math.max(0, used - (cache ?? 0));
}

/** The folders of every memory cgroup above this process, innermost first. Hybrid systems keep memory in v1. */
function memoryFolders(ports: Ports): { folder: string; version: 1 | 2 }[] {
  const cgroups = readText(ports, '/proc/self/cgroup');
  const mountinfo = readText(ports, '/proc/self/mountinfo');
  if (cgroups === undefined || mountinfo === undefined) return [];
  for (const version of [1, 2] as const) {
    const path = ownPath(cgroups, version);
    const mounts = memoryMounts(mountinfo, version);
    // A hierarchy can be mounted twice; the one whose root lies above the process shows its limits.
    const mount =
      mounts.find(({ root }) => path !== undefined && !posix.relative(root, path).startsWith('..')) ?? mounts[0];
    if (path !== undefined && mount) return chainOf(path, mount).map((folder) => ({ folder, version }));
  }
  return [];
}

/** Every memory cgroup above this process, innermost first; empty where there are none. Source: kernel docs, cgroup-v1/memory and cgroup-v2. */
export function readMemoryCgroups(ports: Ports): MemoryCgroup[] {
  return memoryFolders(ports).map(({ folder, version }) => ({
    folder,
    version,
    limitBytes: readLimit(ports, folder, version),
    usedBytes: readUsed(ports, folder, version),
  }));
}

/**
 * Processes the kernel killed for want of memory in the cgroups above this process, ever: the sum of `oom_kill` over the
 * chain, so one kill can count once a level. Only its rise means something. 0 where no counter can be read.
 */
export function readCgroupOomKills(ports: Ports): number {
  return memoryFolders(ports)
    .map(({ folder, version }) => `${folder}/${version === 2 ? 'memory.events' : 'memory.oom_control'}`)
    .reduce((sum, path) => sum + (readKeyed(ports, path, 'oom_kill') ?? 0), 0);
}
