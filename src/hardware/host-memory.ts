import { KiB, MiB, type Ports } from '../core/index.ts';
import { readMemoryCgroups } from './cgroup.ts';
import type { HostMemory } from './hardware.ts';

/** `MemTotal:   263856432 kB` as bytes. */
function readMeminfo(text: string): (key: string) => number | undefined {
  return (key) => {
    const match = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text);
    return match ? Number(match[1]) * KiB : undefined;
  };
}

/** What Slurm gives this job on this node, in MiB there; it ends a job that takes more even where no cgroup holds it. */
function readSlurmLimit({ environment }: Ports): { bytes: number; limitedBy: string }[] {
  const read = (name: string): number => (/^\d+$/.test(environment[name] ?? '') ? Number(environment[name]) : 0);
  const perCpu = read('SLURM_MEM_PER_CPU') * read('SLURM_CPUS_ON_NODE');
  const limits = [
    { bytes: read('SLURM_MEM_PER_NODE') * MiB, limitedBy: 'SLURM_MEM_PER_NODE' },
    { bytes: perCpu * MiB, limitedBy: 'SLURM_MEM_PER_CPU' },
  ];
  // 0 stands for the whole node.
  return limits.filter(({ bytes }) => bytes > 0);
}

function readLinuxMemory(ports: Ports): HostMemory | undefined {
  const outcome = ports.files.readText('/proc/meminfo');
  if (!outcome.ok) return undefined;
  const field = readMeminfo(outcome.value);
  const totalBytes = field('MemTotal');
  // MemAvailable came with Linux 3.14; before, free memory plus the page cache is the usual stand-in.
  const availableBytes = field('MemAvailable') ?? (field('MemFree') ?? 0) + (field('Cached') ?? 0);
  if (totalBytes === undefined) return undefined;
  const rooms = [
    { bytes: availableBytes, limitedBy: 'MemAvailable' },
    ...readSlurmLimit(ports),
    ...readMemoryCgroups(ports).flatMap(({ folder, limitBytes, usedBytes }) =>
      limitBytes === undefined ? [] : [{ bytes: Math.max(0, limitBytes - usedBytes), limitedBy: folder }],
    ),
  ];
  const least = rooms.reduce((best, room) => (room.bytes < best.bytes ? room : best));
  return {
    totalBytes,
    availableBytes: least.bytes,
    limitedBy: least.limitedBy,
    swapTotalBytes: field('SwapTotal') ?? 0,
    swapFreeBytes: field('SwapFree') ?? 0,
  };
}

/** macOS: the size only. What is free there is compressed and purgeable memory that no single figure names. */
async function readMacMemory(ports: Ports): Promise<HostMemory | undefined> {
  const { stdout } = await ports.programs.run('sysctl', ['-n', 'hw.memsize'], { timeoutMs: 2000 });
  const totalBytes = /^\d+$/.test(stdout.trim()) ? Number(stdout.trim()) : undefined;
  if (totalBytes === undefined) return undefined;
  return { totalBytes, availableBytes: totalBytes, limitedBy: 'hw.memsize', swapTotalBytes: 0, swapFreeBytes: 0 };
}

/** Host memory of this machine, with what the cgroups above this process leave of it; undefined where it cannot be read. */
export const readHostMemory = async (ports: Ports): Promise<HostMemory | undefined> =>
  ports.platform === 'darwin' ? readMacMemory(ports) : readLinuxMemory(ports);
