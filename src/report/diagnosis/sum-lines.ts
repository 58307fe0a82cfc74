import { formatBytes } from '../../core/index.ts';
import type { Arithmetic } from '../../diagnosis/index.ts';
import { type Language, type Phrase, SUMS, say } from './phrases/index.ts';

const OF_NOTE = 64 * 1024 ** 2;

/** An allocator's message done for the reader, one sentence a fact. */
export function sumLines(sums: Arithmetic, language: Language): readonly string[] {
  const size = (bytes: number | undefined): string => (bytes === undefined ? '?' : formatBytes(bytes));
  const lines: string[] = [];
  const tell = (phrase: Phrase, values: Readonly<Record<string, string | number>> = {}): void => {
    lines.push(say(phrase, language, values));
  };
  const { triedBytes, freeBytes, shortBytes, totalBytes, allocatedBytes, strandedBytes, besideBytes } = sums;
  const tried = size(triedBytes);
  const total = size(totalBytes);
  const stranded = size(strandedBytes);
  if (sums.fault && sums.fault !== 'own-share-unknown') {
    if (triedBytes !== undefined) tell(SUMS.askedOnly, { tried });
    return [...lines, say(SUMS[sums.fault], language)];
  }
  if (sums.impossible) tell(SUMS.impossible, { total, tried });
  else if (sums.smallestSegment) tell(SUMS.segment, { tried });
  else if (shortBytes !== undefined && shortBytes > 0)
    tell(SUMS.asked, { tried, free: size(freeBytes), short: size(shortBytes) });
  else if (triedBytes !== undefined) tell(SUMS.askedOnly, { tried });
  if (sums.nearMiss) tell(SUMS.near);
  if (totalBytes !== undefined && allocatedBytes !== undefined) {
    if (strandedBytes !== undefined) tell(SUMS.own, { total, allocated: size(allocatedBytes), stranded });
    else tell(SUMS.ownTensors, { total, allocated: size(allocatedBytes) });
  }
  if (besideBytes !== undefined && besideBytes > OF_NOTE) tell(SUMS.beside, { size: size(besideBytes) });
  if (sums.othersBytes !== undefined && sums.othersBytes > OF_NOTE) {
    tell(SUMS.others, { size: size(sums.othersBytes) });
    for (const { pid, bytes } of sums.others) tell(SUMS.otherOne, { pid, size: size(bytes) });
  }
  if (!sums.impossible && strandedBytes !== undefined && triedBytes !== undefined) {
    if (sums.strandedWouldServe && !sums.smallestSegment) tell(SUMS.stranded, { stranded, tried });
    else if (!sums.strandedWouldServe) tell(SUMS.notStranded, { stranded });
  }
  if (sums.fault) tell(SUMS[sums.fault]);
  return lines;
}
