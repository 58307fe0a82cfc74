import type { Evidence } from './evidence.ts';
import type { FailureKind } from './failure.ts';
import type { Finding } from './findings.ts';
import type { Reading } from './memory-shares.ts';

/** Work on the host before or beside training that fills RAM, not the card. */
const HOST_WORK =
  /(?:Running tokenizer|Tokeniz|Map(?: \(|:)|Filter(?: \(|:)|Loading checkpoint shards|Loading weights|Generating \w+ split|Packing|Converting|Preprocess)[^|]*\d{1,3}%\|/;
const NEAR_LIMIT = 0.9;
/** torchrun tells of one of several ranks: each had loaded the model and the data for itself. */
const ONE_OF_MANY = /failed \(exitcode: -9\) local_rank: \d+/;

const likely = (kind: FailureKind, candidates: readonly FailureKind[]): Reading => ({
  kind,
  confidence: 'medium',
  candidates,
});

/** Pages that lie in swap because they are not used are few; a tree that has a quarter of itself there fetches them back all the time. */
const MUCH_SWAP = 0.25;

/** Whether so much of the tree was in swap that it must have waited for the disk at every step. */
export const wasSwappedOut = ({ peakSwapBytes = 0, peakRamBytes }: Evidence): boolean =>
  peakSwapBytes > 0 && peakSwapBytes >= MUCH_SWAP * (peakSwapBytes + peakRamBytes);

/**
 * Says who sent a signal 9. It leaves no text, and users, schedulers and the OOM killer send the same one: only a count of
 * kills, a peak at the limit, or the way it struck is a sign. `told` is a line in which a survivor reports it.
 */
export function readKill(evidence: Evidence, told: Finding | undefined): Reading {
  const { cgroupOomKills, cgroupLimitBytes, hostRamBytes, hostOomKills = 0, peakRamBytes } = evidence;
  const swapped = wasSwappedOut(evidence);
  if (cgroupOomKills > 0) {
    return cgroupLimitBytes === null
      ? { kind: 'host_ram', confidence: 'high', candidates: [] }
      : { kind: 'cgroup', confidence: 'high', candidates: ['host_ram'] };
  }
  if (cgroupLimitBytes != null && peakRamBytes >= NEAR_LIMIT * cgroupLimitBytes) return likely('cgroup', ['host_ram']);
  if (swapped && cgroupLimitBytes == null) return likely('swap_thrash', ['host_ram', 'cgroup']);
  if (hostRamBytes !== undefined && peakRamBytes >= NEAR_LIMIT * hostRamBytes) return likely('host_ram', ['cgroup']);
  if (hostOomKills > 0) return likely('host_ram', ['cgroup', 'not_memory']);
  const preparing = evidence.tail.slice(-8).some((line) => HOST_WORK.test(line));
  const traits: Reading['traits'] = [
    ...(preparing ? (['preparing-data'] as const) : []),
    ...(told && ONE_OF_MANY.test(told.line.text) ? (['rank-copies'] as const) : []),
  ];
  if (told?.signature.kind === 'host_ram') return { ...likely('host_ram', told.signature.candidates ?? []), traits };
  if (preparing) return { ...likely('host_ram', ['cgroup', 'not_memory']), traits };
  return { kind: 'unknown', confidence: 'low', candidates: told?.signature.candidates ?? ['host_ram', 'cgroup'] };
}
