import { setTimeout as sleep } from 'node:timers/promises';

export interface GpuMemoryWait {
  readonly timeoutMs: number;
  /** How far above the baseline still counts as free: other programs on the card come and go. */
  readonly toleranceBytes: number;
  readonly everyMs?: number;
}

/**
 * Waits until the device memory in use has fallen back to what it was before the attempt. A driver frees a dead process's
 * memory late, sometimes never (a zombie in another namespace): then `freed` is false and shrinking the run would be wrong.
 * Without a driver (`sample` gives undefined) there is nothing to wait for.
 */
export async function waitForGpuMemory(
  sample: () => Promise<number | undefined>,
  baselineBytes: number,
  { timeoutMs, toleranceBytes, everyMs = 500 }: GpuMemoryWait,
): Promise<{ freed: boolean; lastBytes?: number }> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const lastBytes = await sample().catch(() => undefined);
    if (lastBytes === undefined) return { freed: true };
    if (lastBytes <= baselineBytes + toleranceBytes) return { freed: true, lastBytes };
    if (Date.now() + everyMs > giveUpAt) return { freed: false, lastBytes };
    await sleep(everyMs);
  }
}
