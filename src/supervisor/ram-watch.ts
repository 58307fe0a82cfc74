import { type ProcessMemory, readProcessMemory, readRam } from './memory-use.ts';

/** What is known of one process since the last full look. */
interface Known {
  readonly ramBytes: number;
  readonly anonymousBytes: number;
  highBytes: number;
}

/**
 * RAM of a process tree between full looks. A full look walks page tables, so it is seldom; what grows and is killed in between
 * would be missed. A glance reads two numbers of the kernel per process that cost nothing: pages of its own, and its high-water mark.
 */
export interface RamWatch {
  /** Sizes all of `pids`; gives their sum now, bytes. */
  readonly look: (pids: readonly number[]) => Promise<number>;
  /** Only those known from the last look. */
  readonly glance: () => void;
  /** Highest level so far, bytes. */
  readonly peakBytes: () => number;
  /** The most that was in swap at one moment, bytes. */
  readonly peakSwapBytes: () => number;
}

/** What a process has reached since it was last sized, bytes. Growth of mapped and shared pages is left to full looks: ranks share them. */
function levelOf(known: Known, now: ProcessMemory): number {
  const grown = Math.max(0, now.anonymousBytes - known.anonymousBytes);
  // A mark that has risen was set since: the process was that much larger than it is now.
  const fallen = now.highBytes > known.highBytes ? Math.max(0, now.highBytes - now.residentBytes) : 0;
  return known.ramBytes + grown + fallen;
}

/** `root` is put before every path (for tests). */
export function createRamWatch(root = ''): RamWatch {
  let known = new Map<number, Known>();
  let peakBytes = 0;
  let peakSwapBytes = 0;
  const glance = (): void => {
    let level = 0;
    let swapped = 0;
    for (const [pid, one] of known) {
      const now = readProcessMemory(pid, root);
      if (!now) continue;
      level += levelOf(one, now);
      swapped += now.swapBytes;
      one.highBytes = Math.max(one.highBytes, now.highBytes);
    }
    peakBytes = Math.max(peakBytes, level);
    peakSwapBytes = Math.max(peakSwapBytes, swapped);
  };
  return {
    glance,
    peakBytes: () => peakBytes,
    peakSwapBytes: () => peakSwapBytes,
    async look(pids) {
      glance();
      const sized = await Promise.all(
        pids.map(async (pid) => {
          const ramBytes = await readRam(pid, root);
          const now = readProcessMemory(pid, root);
          // A first sight: what it was at its highest before counts as well.
          const before = known.get(pid)?.highBytes ?? 0;
          const fallen = now && now.highBytes > before ? Math.max(0, now.highBytes - now.residentBytes) : 0;
          return { pid, ramBytes, now, fallen };
        }),
      );
      known = new Map(
        sized.flatMap(({ pid, ramBytes, now }) =>
          now ? [[pid, { ramBytes, anonymousBytes: now.anonymousBytes, highBytes: now.highBytes }]] : [],
        ),
      );
      const level = sized.reduce((sum, { ramBytes }) => sum + ramBytes, 0);
      peakBytes = Math.max(peakBytes, level + sized.reduce((sum, { fallen }) => sum + fallen, 0));
      return level;
    },
  };
}
