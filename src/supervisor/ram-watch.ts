import { type ProcessMemory, readProcessMemory, readRam } from './memory-use.ts';

/** What is known of one process since it was last sized. */
interface Known {
  readonly ramBytes: number;
  readonly anonymousBytes: number;
  readonly residentBytes: number;
  highBytes: number;
}

/**
 * RAM of a process tree. Sizing walks page tables, so it is seldom; what grows and is killed in between would be missed. A glance
 * reads a few numbers of the kernel per process that cost little: pages of its own, and its high-water mark.
 */
export interface RamWatch {
  /** Takes `pids` for the tree, and sizes them where they are others than before or have changed; gives their sum now, bytes. */
  readonly look: (pids: readonly number[]) => Promise<number>;
  /** Only those known from the last look. Returns whether anything worth watching more closely has moved. */
  readonly glance: () => boolean;
  /** As of the last look or glance, bytes. */
  readonly nowBytes: () => number;
  /** Highest level so far, bytes. */
  readonly peakBytes: () => number;
  /** What was in swap at the last look or glance, bytes. */
  readonly swapBytes: () => number;
  /** The most that was in swap at one moment, bytes. */
  readonly peakSwapBytes: () => number;
}

/** Part of the whole by which resident pages may change before a tree is sized anew, or looked at more often. */
const STILL = 0.01;
/** Less than this is never worth it. */
const LITTLE_BYTES = 4 * 1024 ** 2;
/** Looks after which it is sized anew all the same: sharing with others changes without a trace. */
const LOOKS_PER_SIZE = 30;

/** What a process has reached since it was last sized, bytes. Growth of mapped and shared pages is left to sizing: ranks share them. */
function levelOf(known: Known, now: ProcessMemory): number {
  const grown = Math.max(0, now.anonymousBytes - known.anonymousBytes);
  // A mark that has risen was set since: the process was that much larger than it is now.
  const fallen = now.highBytes > known.highBytes ? Math.max(0, now.highBytes - now.residentBytes) : 0;
  return known.ramBytes + grown + fallen;
}

/** `root` is put before every path (for tests). */
export function createRamWatch(root = ''): RamWatch {
  let known = new Map<number, Known>();
  let nowBytes = 0;
  let peakBytes = 0;
  let peakSwapBytes = 0;
  let swapBytes = 0;
  let looks = 0;
  /** Returns how far resident pages have moved since the last sizing, bytes; undefined: somebody is gone. */
  const readAgain = (): number | undefined => {
    let level = 0;
    let now = 0;
    let swapped = 0;
    let moved: number | undefined = 0;
    for (const [pid, one] of known) {
      const memory = readProcessMemory(pid, root);
      if (!memory) {
        moved = undefined;
        continue;
      }
      level += levelOf(one, memory);
      now += one.ramBytes + memory.anonymousBytes - one.anonymousBytes;
      swapped += memory.swapBytes;
      if (moved !== undefined) moved += Math.abs(memory.residentBytes - one.residentBytes);
      one.highBytes = Math.max(one.highBytes, memory.highBytes);
    }
    nowBytes = Math.max(0, now);
    peakBytes = Math.max(peakBytes, level);
    swapBytes = swapped;
    peakSwapBytes = Math.max(peakSwapBytes, swapped);
    return moved;
  };
  return {
    glance() {
      const before = nowBytes;
      const moved = readAgain();
      return moved === undefined || Math.abs(nowBytes - before) > Math.max(LITTLE_BYTES, STILL * before);
    },
    nowBytes: () => nowBytes,
    peakBytes: () => peakBytes,
    swapBytes: () => swapBytes,
    peakSwapBytes: () => peakSwapBytes,
    async look(pids) {
      const moved = readAgain();
      const same = pids.length === known.size && pids.every((pid) => known.has(pid));
      if (same && moved !== undefined && moved <= STILL * nowBytes && ++looks % LOOKS_PER_SIZE !== 0) return nowBytes;
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
      known = new Map(sized.flatMap(({ pid, ramBytes, now }) => (now ? [[pid, { ramBytes, ...now }]] : [])));
      nowBytes = sized.reduce((sum, { ramBytes }) => sum + ramBytes, 0);
      peakBytes = Math.max(peakBytes, nowBytes + sized.reduce((sum, { fallen }) => sum + fallen, 0));
      return nowBytes;
    },
  };
}
