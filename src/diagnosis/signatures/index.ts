import type { CleanLine } from '../normalise.ts';
import { deviceRuntime } from './device-runtime.ts';
import { hostMemory } from './host-memory.ts';
import { dataLoader, goneWithoutAWord, killedByMemory } from './killed.ts';
import { crashes, echoes, neverMemory } from './never-memory.ts';
import { recoveredFrom } from './recovered.ts';
import { diskSpace, sharedMemory } from './shared-memory-and-disk.ts';
import { type Signature, type Standing, standingOf } from './signature.ts';
import { torchAllocator } from './torch-allocator.ts';

export * from './signature.ts';

/** Every known text. The first that matches a line names it, so the special ones stand before the general. */
export const SIGNATURES: readonly Signature[] = [
  ...recoveredFrom,
  ...neverMemory,
  ...torchAllocator,
  ...hostMemory,
  ...deviceRuntime,
  ...dataLoader,
  ...sharedMemory,
  ...diskSpace,
  ...killedByMemory,
  ...goneWithoutAWord,
  ...echoes,
  ...crashes,
];

const HINTS: readonly string[] = [...new Set(SIGNATURES.flatMap((signature) => signature.hints))];
/** Words by which lines that matter are found in a huge log. */
export const SKIM_WORDS: readonly string[] = [
  ...new Set(SIGNATURES.flatMap((signature) => signature.skim ?? signature.hints)),
];

const literally = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const ANY_HINT = new RegExp(HINTS.map(literally).join('|'));
const BY_ID = new Map(SIGNATURES.map((signature) => [signature.id, signature]));

export const signatureById = (id: string): Signature | undefined => BY_ID.get(id);

/** Cheap first test of a raw line or of an unfinished one. */
export const mayMatch = (text: string): boolean => ANY_HINT.test(text);

export interface Match {
  readonly signature: Signature;
  readonly standing: Exclude<Standing, 'quoted'>;
}

/** The signature a line carries, where it stands in a place that counts. */
export function matchLine(line: CleanLine): Match | undefined {
  if (!mayMatch(line.text)) return undefined;
  for (const signature of SIGNATURES) {
    const found = signature.pattern.exec(line.text);
    if (!found) continue;
    const standing = standingOf(signature, line, found.index);
    if (standing !== 'quoted') return { signature, standing };
  }
  return undefined;
}
