import type { Ports } from '../core/index.ts';
import type { Allocation } from '../dialects/index.ts';
import { type Hardware, resolveGpuName } from '../hardware/index.ts';

type Environment = Ports['environment'];

/** Whether this is already the machine that the job runs on. */
const isInside = (environment: Environment): boolean => environment.SLURM_JOB_ID !== undefined;

/**
 * The card to plan for: as named with `--gpu`, as many of it as the job asks for where no number is given; else the one that
 * the job names itself, where that name means one card only. undefined: what is in this machine.
 */
export function plannedGpu(
  named: string | undefined,
  allocation: Allocation | undefined,
  environment: Environment,
): string | undefined {
  const count = allocation?.gpusPerNode;
  if (named !== undefined) return count === undefined || named.includes(':') ? named : `${named}:${count}`;
  if (count === undefined || !allocation?.gpuType || isInside(environment)) return undefined;
  const own = `${allocation.gpuType.replaceAll('_', '-')}:${count}`;
  return resolveGpuName(own).ok ? own : undefined;
}

/** The RAM that the job may use is all there is for it, here or on the machine that it will run on. */
export function withinAllocation(
  hardware: Hardware,
  allocation: Allocation | undefined,
  environment: Environment,
): Hardware {
  const limit = allocation?.hostRamBytes;
  if (limit === undefined) return hardware;
  const limitedBy = allocation!.hostRamPlace!;
  if (!isInside(environment)) {
    const host = { totalBytes: limit, availableBytes: limit, limitedBy, swapTotalBytes: 0, swapFreeBytes: 0 };
    return { ...hardware, host };
  }
  const { host } = hardware;
  return host && host.availableBytes > limit
    ? { ...hardware, host: { ...host, availableBytes: limit, limitedBy } }
    : hardware;
}
