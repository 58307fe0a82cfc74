import type { RemedyId } from '../../../diagnosis/index.ts';
import { LABELS, LARGER_CARD, NOTES } from './labels.ts';
import { LOOKS } from './looks.ts';
import type { Phrase } from './phrase.ts';
import { OTHER_REMEDIES } from './remedies-else.ts';
import { GPU_REMEDIES } from './remedies-gpu.ts';
import { SUMS } from './sums.ts';
import { CANDIDATES, PHASES, TITLES, VERDICTS } from './titles.ts';

export * from './labels.ts';
export * from './looks.ts';
export * from './phrase.ts';
export * from './sums.ts';
export * from './titles.ts';

export const REMEDIES: Readonly<Record<RemedyId, Phrase>> = { ...GPU_REMEDIES, ...OTHER_REMEDIES };

/** Every phrase there is, by `group.id`: a translation is complete when each has a text in each language. */
export const CATALOGUE: Readonly<Record<string, Phrase>> = Object.fromEntries(
  Object.entries({
    title: TITLES,
    phase: PHASES,
    verdict: VERDICTS,
    candidate: CANDIDATES,
    label: LABELS,
    note: NOTES,
    larger: LARGER_CARD,
    sum: SUMS,
    remedy: REMEDIES,
    look: Object.fromEntries(Object.entries(LOOKS).map(([id, { shows }]) => [id, shows])),
  }).flatMap(([group, phrases]) =>
    Object.entries(phrases as Record<string, Phrase>).map(([id, phrase]) => [`${group}.${id}`, phrase] as const),
  ),
);
