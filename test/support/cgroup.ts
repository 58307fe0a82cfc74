import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A memory cgroup of our own; a shell puts itself in through `procsPath` before it becomes the program. */
export interface MemoryCgroup {
  readonly procsPath: string;
  readonly remove: () => void;
}

const V1 = '/sys/fs/cgroup/memory';
const V2 = '/sys/fs/cgroup';

/** Makes one with a limit; undefined where this machine or user may not (no root, no controller, a container). */
export function makeMemoryCgroup(name: string, limitBytes: number): MemoryCgroup | undefined {
  const v1 = existsSync(join(V1, 'memory.limit_in_bytes'));
  const folder = join(v1 ? V1 : V2, name);
  try {
    if (!v1 && !readFileSync(join(V2, 'cgroup.subtree_control'), 'utf8').includes('memory')) return undefined;
    mkdirSync(folder);
    try {
      writeFileSync(join(folder, v1 ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes));
      // Where swap is counted apart, the limit would only push pages out.
      if (!v1 && existsSync(join(folder, 'memory.swap.max'))) writeFileSync(join(folder, 'memory.swap.max'), '0');
    } catch (error) {
      rmdirSync(folder);
      throw error;
    }
  } catch {
    return undefined;
  }
  return { procsPath: join(folder, 'cgroup.procs'), remove: () => rmdirSync(folder) };
}
