import { GiB } from '../core/index.ts';
import { waitForGpuMemory } from '../supervisor/index.ts';
import type { RunHost } from './run.ts';

/** A driver takes a dead process's context apart within seconds; what is held longer is held by something else. */
const TIMEOUT_MS = 60_000;
/** Desktop programs come and go by this much. */
const TOLERANCE_BYTES = GiB / 2;

/**
 * Sees that the memory of the ended attempt is back before the next one starts. false: it is still held, and starting
 * smaller around it would be wrong.
 */
export async function waitUntilFree(
  host: Pick<RunHost, 'emit'>,
  sample: (() => Promise<number | undefined>) | undefined,
  baselineBytes: number | undefined,
  timeoutMs: number = TIMEOUT_MS,
): Promise<boolean> {
  if (!sample || baselineBytes === undefined) return true;
  const held = (await sample()) ?? baselineBytes;
  if (held <= baselineBytes + TOLERANCE_BYTES) return true;
  host.emit({ kind: 'gpu-memory-waiting', heldBytes: held - baselineBytes, timeoutMs });
  const before = performance.now();
  const wait = await waitForGpuMemory(sample, baselineBytes, {
    timeoutMs,
    toleranceBytes: TOLERANCE_BYTES,
  });
  const waitedMs = Math.round(performance.now() - before);
  if (wait.freed) host.emit({ kind: 'gpu-memory-freed', waitedMs });
  else host.emit({ kind: 'gpu-memory-stuck', heldBytes: (wait.lastBytes ?? held) - baselineBytes, waitedMs });
  return wait.freed;
}
