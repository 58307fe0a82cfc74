import { type Diagnostic, warning } from '../../core/index.ts';
import { formatOrigin } from '../../spec/index.ts';
import type { Unread } from '../contract.ts';
import type { FileValue } from '../dialect.ts';
import { didYouMean } from '../did-you-mean.ts';
import type { SettingReader } from './settings.ts';

/** The words of a key that was given and not looked at: `no-effect-on-memory` where the tool has it, else `unknown-key`. */
export const idleOrUnknown =
  (known: { readonly has: (key: string) => boolean }) =>
  (key: string): string =>
    known.has(key) ? 'no-effect-on-memory' : 'unknown-key';

/** What was given and not looked at, each with the reason that `reasonOf` gives, so that nothing is dropped in silence. */
export const leftOver = (reader: SettingReader, reasonOf: (key: string) => string): readonly Unread[] =>
  reader.values
    .all()
    .filter(({ key }) => !reader.noted.has(key))
    .map(({ key, origin }) => ({ key, origin, reason: reasonOf(key) }));

/** Words that turn a switch off, or that say nothing. */
export const isOff = (raw: FileValue): boolean => /^(?:false|no|none|null|0|0\.0?|\[\]|)$/i.test(String(raw));

/** A warning for each of these keys that is on; `reasons` says by key what of it nobody here counts, `says` which values do. */
export function notEstimated(
  reader: SettingReader,
  reasons: Readonly<Record<string, string>>,
  says: (raw: FileValue) => boolean = (raw) => !isOff(raw),
): readonly Diagnostic[] {
  return Object.entries(reasons).flatMap(([key, why]) => {
    const found = reader.values.find(key);
    reader.note(key);
    if (!found || !says(found.raw)) return [];
    return [
      warning('not-estimated', `${key}: ${why}, which the estimate leaves out`, {
        location: formatOrigin(found.origin),
      }),
    ];
  });
}

/**
 * Keys that are nearly one of `known`. For tools that pass over keys they do not know, where a slip of the pen goes unnoticed.
 * `nameOf` gives the part of a key that `known` lists; `message` says what the tool makes of a stranger.
 */
export function misspelt(
  reader: SettingReader,
  known: readonly string[],
  message: (name: string) => string,
  nameOf: (key: string) => string = (key) => key,
): readonly Diagnostic[] {
  const names = new Set(known);
  return reader.values.all().flatMap(({ key, origin }) => {
    const name = nameOf(key);
    if (names.has(name)) return [];
    const help = didYouMean(name, known);
    if (!help.startsWith('did you mean')) return [];
    return [warning('unknown-key', message(name), { location: formatOrigin(origin), help })];
  });
}
